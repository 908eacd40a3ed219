package foldname_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func TestNamesThatLookTheSameHaveOneKey(t *testing.T) {
	for _, same := range [][]string{
		{"apollo", "Apollo", "APOLLO", " apollo ", "ａｐｏｌｌｏ", "Ａｐｏｌｌｏ", "a\u200dpollo", "apo\u200bllo", "\u202eapollo\u202c",
			"apollo\ufe0f", "a\U000E0061pollo", "apo\u00adllo"},
		{"billing api", "Billing  API", "billing\u00a0api", "billing\u3000api", "\tbilling\napi"},
		{"订单服务", "订单服务 ", "订单\u200b服务"},
		{"プロジェクト", "ﾌﾟﾛｼﾞｪｸﾄ", "フ\u309aロシ\u3099ェクト"},
		{"straße", "STRASSE", "Strasse"},
		{"office", "oﬃce", "OFFICE"},
		{"café", "cafe\u0301", "CAFÉ"},
		{"ς", "σ", "Σ"},
		{"i\u0307stanbul", "İstanbul"},
		{"①", "1"},
	} {
		for _, name := range same[1:] {
			if foldname.Key(name) != foldname.Key(same[0]) {
				t.Errorf("%q has the key %q, %q has %q, want the same", name, foldname.Key(name), same[0], foldname.Key(same[0]))
			}
		}
	}
	for _, other := range [][2]string{{"apollo", "аpollo"}, {"a b", "ab"}, {"istanbul", "ıstanbul"}, {"cafe", "café"},
		{"app-1", "app-2"}} {
		if foldname.Key(other[0]) == foldname.Key(other[1]) {
			t.Errorf("%q and %q have one key, want two", other[0], other[1])
		}
	}
	for _, empty := range []string{"", " ", "\u200b", "\u200d\u202e", "\u3164", "\U000E0061\ufe0f"} {
		if key := foldname.Key(empty); key != "" {
			t.Errorf("%q has the key %q; want none", empty, key)
		}
	}
}

func TestTypingErrorsAreReported(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"apollo", "apolo", true}, {"apollo", "appolo", true}, {"mobile", "module", false}, {"apollo", "aplolo", true},
		{"billing api", "biling-api", true}, {"billing-api", "billing_api", true}, {"billing-api", "billing-apo", true},
		{"billing api", "ledger api", false},
		{"services", "service", true}, {"atlas", "atlsa", true}, {"crm", "cms", false}, {"app", "apps", false},
		{"v1", "v2", false}, {"app-1", "app-2", false}, {"app-1", "app-12", false}, {"apollo", "apollo 11", false},
		{"apollo 11", "apollo 12", false},
		{"release 2026", "release 2027", false}, {"team-a", "team-b", false}, {"staging-eu", "staging-us", false},
		{"staging-eu", "stagign-eu", true},
		{"订单服务", "账单服务", false}, {"第一季度项目", "第二季度项目", false}, {"客户订单服务平台", "客户订单服务台", true},
		{"проект", "прокет", true}, {"same", "same", false}, {"", "a", false},
	} {
		if foldname.Typo(c.a, c.b) != c.want || foldname.Typo(c.b, c.a) != c.want {
			t.Errorf("%q and %q: %v, want %v", c.a, c.b, !c.want, c.want)
		}
	}
	if long := strings.Repeat("x", 300); foldname.Typo(long, long+"y") {
		t.Error("names of 300 characters: got a typo of each other, want them not compared")
	}
}

func TestFoldingIsIdempotentPerCharacter(t *testing.T) {
	for r := rune(0); r < 0x20000; r++ {
		if unicode.In(r, unicode.Han, unicode.Hangul, unicode.Co) && r%64 != 0 || !longtest.Part(int(r), 1, 7) {
			continue
		}
		for _, name := range []string{string(r), "a" + string(r) + "\u0345", string(r) + "\u200d\u0301"} {
			if key := foldname.Key(name); utf8.ValidString(name) && foldname.Key(key) != key {
				t.Fatalf("%q has the key %q, whose key is %q, want the same", name, key, foldname.Key(key))
			}
		}
	}
}

func FuzzKeyIsItsOwnKey(f *testing.F) {
	for _, name := range []string{"Apollo", "ｱﾎﾟﾛ", "İ\u200d", "ß\u0345", "ﬃ", "\u0130\u0307", "ͅΑ", "각", "订单",
		"\U0001d400", "ǰ\u0323", "ﷺ"} {
		f.Add(name, "apollo")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if !utf8.ValidString(a) {
			t.Skip("names are checked to be UTF-8 before they are folded")
		}
		key := foldname.Key(a)
		if again := foldname.Key(key); again != key {
			t.Errorf("%q has the key %q, whose key is %q, want the same", a, key, again)
		}
		if foldname.Key(strings.ToUpper(key)) == "" && key != "" || strings.TrimSpace(key) != key {
			t.Errorf("%q has the key %q, want one without space around it, also in capitals", a, key)
		}
		if foldname.Typo(key, b) != foldname.Typo(b, key) {
			t.Errorf("%q and %q differ by direction, want the same both ways", key, b)
		}
	})
}
