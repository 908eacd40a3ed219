package markdown

import (
	"encoding/xml"
	"errors"
	"html/template"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// ours renders as the pages do.
var ours = New(2, time.Minute)

func page(source string) template.HTML { return ours.HTML(source) }

func TestMarkdownAsHTML(t *testing.T) {
	const rel = ` rel="noopener noreferrer nofollow"`
	for name, c := range map[string]struct{ source, want string }{
		"headings are below those of the page": {"# One\n\n###### Six", "<h3>One</h3>\n<h6>Six</h6>\n"},
		"marks": {"**a** *b* ~~c~~ `d`",
			"<p><strong>a</strong> <em>b</em> <del>c</del> <code>d</code></p>\n"},
		"a line stays a line": {"a\nb", "<p>a<br>\nb</p>\n"},
		"a link": {"[a](https://example.com/x?y=1&z)",
			`<p><a href="https://example.com/x?y=1&amp;z"` + rel + ">a</a></p>\n"},
		"a bare address": {"see https://example.com/x.", `<p>see <a href="https://example.com/x"` +
			rel + ">https://example.com/x</a>.</p>\n"},
		"a picture is a link": {`![a cat](https://example.com/cat.png "Cat")`,
			`<p><a href="https://example.com/cat.png" title="Cat"` + rel + ">a cat</a></p>\n"},
		"a picture without words": {"![](https://example.com/cat.png)",
			`<p><a href="https://example.com/cat.png"` + rel + ">picture</a></p>\n"},
		"a picture in a link": {"[![a cat](https://example.com/cat.png)](https://example.com)",
			`<p><a href="https://example.com"` + rel + ">a cat</a></p>\n"},
		"a picture deep in a link": {"[**![a *cat*](b)** x](c)", `<p><a href="c"` + rel +
			"><strong>a <em>cat</em></strong> x</a></p>\n"},
		"a link in a picture": {"![a [b](c) <https://d.example/?e&f>](g)", `<p><a href="g"` + rel +
			">a b https://d.example/?e&amp;f</a></p>\n"},
		"absurdly nested quotes": {strings.Repeat("> ", 101) + "<b>",
			string(plain(strings.Repeat("> ", 101)+"<b>", tooComplex))},
		"a line of stars": {strings.Repeat("*", 300), "<hr>\n"},
		"HTML is text": {"a <b onclick=x>b</b> <!-- c -->",
			"<p>a &lt;b onclick=x&gt;b&lt;/b&gt; &lt;!-- c --&gt;</p>\n"},
		"blocks of HTML are text": {"<div>\n<script>alert(1)</script>\n</div>\n",
			"<p>&lt;div&gt;\n&lt;script&gt;alert(1)&lt;/script&gt;\n&lt;/div&gt;\n</p>\n"},
		"a script that is not closed": {"<script>\nalert(1)", "<p>&lt;script&gt;\nalert(1)</p>\n"},
		"tasks":                       {"- [ ] a\n- [x] b", "<ul>\n<li>☐ a</li>\n<li>☑ b</li>\n</ul>\n"},
		"code is text": {"```html\n<b>\n```",
			"<pre><code class=\"language-html\">&lt;b&gt;\n</code></pre>\n"},
		"a table": {"|a|b|\n|:-|-:|\n|1|<b>|",
			"<table>\n<thead>\n<tr>\n<th align=\"left\">a</th>\n<th " +
				"align=\"right\">b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td align=\"left\">1</td>\n<td " +
				"align=\"right\">&lt;b&gt;</td>\n</tr>\n</tbody>\n</table>\n"},
		"nothing": {"", ""},
	} {
		if got := string(page(c.source)); got != c.want {
			t.Errorf("%s: %q becomes\n%s\nwant\n%s", name, c.source, got, c.want)
		}
	}
}

// hostileMarkdown are texts that would run scripts or load other addresses if not made harmless.
var hostileMarkdown = []string{
	"[a](javascript:alert(1))", "[a](JaVaScRiPt:alert(1))", "[a](java\nscript:alert(1))", "[a](&#106;avascript:alert(1))",
	"[a](%6aavascript:alert(1))", "[a](\x01javascript:alert(1))",
	"[a]( javascript:alert(1))", "[a](<java script:alert(1)>)", "[a](data:text/html,<script>alert(1)</script>)",
	"[a](vbscript:x)", "[a](file:///etc/passwd)", "![a](data:image/svg+xml,<svg onload=alert(1)>)",
	"![a](javascript:alert(1))", "<javascript:alert(1)>", "<https://example.com/\"onmouseover=alert(1)>",
	"[a]: javascript:alert(1)\n\n[a]", "[a](https://example.com \"\" onclick=alert(1) \"\")",
	"[a](x \"&quot; onclick=&quot;alert(1)\")", "<img src=x onerror=alert(1)>", "<svg><script>alert(1)</script></svg>",
	"<a href=\"javascript:alert(1)\">a</a>", "<iframe src=//example.com>", "<style>*{display:none}</style>",
	"<base href=//example.com>", "<form action=//example.com><input>", "<!--[if IE]><script>alert(1)</script><![endif]-->",
	"<![CDATA[<script>alert(1)</script>]]>", "<?php x ?>", "<!DOCTYPE x>", "</div></section><script>",
	"```\"><script>alert(1)</script>\nx\n```", "``` x onclick=alert(1)\nx\n```", "- [x] <script>",
	"|<script>|\n|-|\n|<img src=x onerror=alert(1)>|", "# <b id=main>", "[![x](javascript:alert(1))](javascript:alert(2))",
	"[a ![b [c](javascript:x)](d) e](f)", "![[a](b)](c)", "[[a](b)](c)", "![a ![b](c) d](e)", "{{.}} {{template \"x\"}}",
	"\x00<script>", "\xff\xfe<b>", "&lt;script&gt; &#60;script&#62; &#x3c;script>", "www.example.com/\"<script>",
	"a@b.example", "<a@b.example>",
	"[a](//example.com/x)", "[a](\\\\example.com)", "[a](mailto:a@b.example)", "[a](#main)", "[a](?x=1)",
}

// tame are the allowed elements and their attributes.
var tame = map[string][]string{
	"p": {"class"}, "br": nil, "hr": nil, "h3": nil, "h4": nil, "h5": nil, "h6": nil, "strong": nil, "em": nil, "del": nil,
	"code": {"class"}, "pre": nil, "blockquote": nil, "ul": nil, "ol": {"start"}, "li": nil,
	"a": {"href", "title", "rel"}, "table": nil, "thead": nil, "tbody": nil, "tr": nil, "th": {"align"}, "td": {"align"},
}

var languageClass = regexp.MustCompile(`^language-`)

// checkTame checks that rendered text contains only complete, allowed elements.
func checkTame(t *testing.T, source string) {
	t.Helper()
	html := string(page(source))
	decoder := xml.NewDecoder(strings.NewReader(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == '\ufffe' ||
			r == '\uffff' { // which HTML allows and XML does not
			return ' '
		}
		return r
	}, strings.ToValidUTF8(html, "?"))))
	decoder.Strict, decoder.AutoClose, decoder.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var open []string
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%q becomes %q: %v", source, html, err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			name := token.Name.Local
			allowed, known := tame[name]
			if !known {
				t.Fatalf("%q becomes %q with <%s>, want only known elements", source, html, name)
			}
			if name == "a" && slices.Contains(open, "a") {
				t.Fatalf("%q becomes %q, with a link in a link, want none", source, html)
			}
			for _, a := range token.Attr {
				if !slices.Contains(allowed, a.Name.Local) || a.Name.Local == "class" && name == "code" &&
					!languageClass.MatchString(a.Value) {
					t.Fatalf("%q becomes %q: <%s> has %s=%q, want only allowed attributes", source, html, name,
						a.Name.Local, a.Value)
				}
				if name == "p" && a.Value != "note" {
					t.Fatalf(`%q becomes %q, with class %q, want "note"`, source, html, a.Value)
				}
				if a.Name.Local == "href" {
					checkTameAddress(t, source, a.Value)
				}
			}
			open = append(open, name)
		case xml.EndElement:
			if len(open) == 0 || open[len(open)-1] != token.Name.Local {
				t.Fatalf("%q becomes %q, where </%s> closes an element that is not open, want the end of the innermost element, "+
					"of %v", source, html, token.Name.Local, open)
			}
			open = open[:len(open)-1]
		case xml.CharData:
		default:
			t.Fatalf("%q becomes %q, with %T", source, html, token)
		}
	}
	if len(open) > 0 {
		t.Fatalf("%q becomes %q, where <%s> is not closed, want open empty", source, html, open[len(open)-1])
	}
}

// checkTameAddress checks that an address leads to another page, and runs nothing.
func checkTameAddress(t *testing.T, source, address string) {
	t.Helper()
	begins := strings.TrimLeftFunc(address, func(r rune) bool { return r <= ' ' }) // as browsers do
	begins = strings.NewReplacer("\n", "", "\t", "", "\r", "").Replace(begins)
	scheme, _, found := strings.Cut(begins, ":")
	if !found || strings.ContainsAny(scheme, "/?#") {
		return
	}
	switch strings.ToLower(scheme) {
	case "javascript", "data", "vbscript", "file":
		t.Errorf("%q becomes a link to %q", source, address)
	}
}

func TestHostileMarkdownIsTame(t *testing.T) {
	for _, source := range hostileMarkdown {
		checkTame(t, source)
		checkTame(t, "- > "+source+"\n\n1. "+source)
		checkTame(t, "["+source+"](https://example.com)")
		checkTame(t, "![**"+source+"**](https://example.com)")
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, source := range hostileMarkdown {
		f.Add(source)
	}
	f.Add("# a\n\n|a|b|\n|-|-|\n|1|2|\n\n- [ ] x\n1. y\n\n> z\n\n***\n~~a~~ `b`")
	f.Fuzz(func(t *testing.T, source string) {
		if len(source) < 10_000 {
			checkTame(t, source)
		}
	})
}

// Thousands of nested marks neither crash the program nor become huge.
func TestDeepMarkdownStaysSmall(t *testing.T) {
	const size = 24 << 10
	long := func(part string) string { return strings.Repeat(part, size/len(part)) }
	for name, source := range map[string]string{
		"quotes": long("> "), "quotes line by line": long("> > > > > > > > > >\n"), "lists": long("- "),
		"numbers": long("1. "), "brackets": long("["), "closing": long("]"), "both": long("[]"), "pairs": long("[a]("),
		"pictures": long("!["), "links in links": long("[a") + long("](b)"), "pictures in pictures": long("![a") +
			long("](b)"), "stars": long("*a **b "), "underscores": long("_"), "star and underscore": long("*_"),
		"backticks": long("`a``b```c````"), "tildes": long("~~a "), "HTML": long("<a "), "comments": long("<!--"),
		"CDATA": long("<![CDATA["), "entities": long("&#"), "table": "|a|\n|-|\n" + long("|a\n"),
		"wide table": long("|a") + "\n" + long("|-") + "\n" + long("|b"), "references": long("[a]: b\n"),
		"references used": "[a]: b\n" + long("[a] "), "definitions": long("[a\\]"), "addresses": long("http://a "),
		"addresses in one": long("http://"),
		"mail":             long("a@b"), "tabs": long("\t"), "indents": long(" - a\n  "), "headings": long("# a\n"),
		"rules": long("***\n"), "one letter": long("a"), "blank": long(" \n"), "NUL": long("\x00"), "escapes": long("\\"),
	} {
		if html := page(source); len(html) > 64*len(source) {
			t.Errorf("%s: %d bytes become %d, want at most %v", name, len(source), len(html), 64*len(source))
		}
	}
}
