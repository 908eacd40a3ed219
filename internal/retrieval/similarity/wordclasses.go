package similarity

import (
	"strings"
	"unicode/utf8"
)

// Closed word classes, in the languages of the labelled pairs and some more.

func set(words string) map[string]bool {
	all := map[string]bool{}
	for _, w := range strings.Fields(words) {
		all[w] = true
	}
	return all
}

var negations = set(`not no never none nobody nothing neither nor without cannot dont doesnt didnt isnt arent wasnt
	werent wont cant couldnt shouldnt wouldnt hasnt havent hadnt
	nicht kein keine keinen keinem keiner keines nie niemals niemand nichts ohne
	nunca jamás nadie nada sin ningún ninguna tampoco ne pas jamais aucun aucune sans rien
	não nem sem nunca non mai nessuno senza niet geen nooit zonder не нет никогда без`)

var wideNegations = []string{"不", "没", "沒", "未", "无", "無い", "别", "ない", "ません", "なかった", "しな", "決して"}

var functionWords = set(`a an the this that these those it its he she we you they i my our your his her their us them
	is are was were be been being has have had do does did will would
	can could may might shall should must of in on at to from by for with about into as and or but if than then so there
	here also still just very every each per since until
	no not never
	der die das den dem des ein eine einen einem einer eines ist sind war waren wird werden wurde wurden hat haben in im
	am an auf um von vom zu zum zur mit für gegen bei nach aus
	und oder aber dass es er sie wir ihr ihre sein seine unser unsere unseren jeden jede jedes immer seit noch dort
	nicht kein keine keinen nie
	el la los las un una unos unas es son está están fue era ser de del en a al con por para desde hasta y o pero que se
	su sus nuestro nuestra nos lo le les cada ya aún allí no nunca
	le les des du et ou est sont dans sur avec pour par il elle nous vous ils qui que ce cette
	note nota notiz confirmed bestätigt confirmado`)

var wideParticles = func() map[rune]bool {
	all := map[rune]bool{}
	for _, r := range "的了在是和与我们把从每年月日号个这那也都就为由有の は を に で が と も へ や から まで です ます し て た い る れ さん 者" {
		all[r] = r != ' '
	}
	return all
}()

// numberWords maps numbers, days of the week and months to one name in all languages. Ordinals are left out:
// second is also a time.
var numberWords = func() map[string]string {
	all := map[string]string{}
	for i, words := range []string{"", "one eins uno", "two zwei dos", "three drei tres", "four vier cuatro",
		"five fünf cinco", "six sechs seis", "seven sieben siete",
		"eight acht ocho", "nine neun nueve", "ten zehn diez", "eleven elf once", "twelve zwölf doce"} {
		for _, w := range strings.Fields(words) {
			all[w] = digits(i)
		}
	}
	for i, words := range []string{"monday mondays montag montags lunes lundi",
		"tuesday tuesdays dienstag dienstags martes mardi", "wednesday wednesdays mittwoch mittwochs miércoles mercredi",
		"thursday thursdays donnerstag donnerstags jueves jeudi", "friday fridays freitag freitags viernes vendredi",
		"saturday saturdays samstag samstags sábado sábados samedi",
		"sunday sundays sonntag sonntags domingo domingos dimanche"} {
		for _, w := range strings.Fields(words) {
			all[w] = "day" + digits(i+1)
		}
	}
	for i, words := range []string{"january januar enero janvier", "february februar febrero février",
		"march märz marzo mars", "april abril avril", "mai mayo", "june juni junio juin",
		"july juli julio juillet", "august agosto août", "september septiembre septembre", "october oktober octubre octobre",
		"november noviembre novembre", "december dezember diciembre décembre"} {
		for _, w := range strings.Fields(words) {
			all[w] = "month" + digits(i+1)
		}
	}
	return all
}()

// wideDay is a name of a day of the week in Chinese or Japanese.
type wideDay struct{ name, number string }

// wideDays are those names by their first character.
var wideDays = func() map[rune][]wideDay {
	all := map[rune][]wideDay{}
	for i, names := range []string{"星期一 周一 月曜", "星期二 周二 火曜", "星期三 周三 水曜", "星期四 周四 木曜", "星期五 周五 金曜", "星期六 周六 土曜",
		"星期日 星期天 周日 日曜"} {
		for _, name := range strings.Fields(names) {
			first, _ := utf8.DecodeRuneInString(name)
			all[first] = append(all[first], wideDay{name, "day" + digits(i+1)})
		}
	}
	return all
}()

var afternoon = func() map[string]string {
	all := map[string]string{}
	for hour := 1; hour < 12; hour++ {
		all[digits(hour)] = digits(hour + 12)
	}
	return all
}()

func digits(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return string(rune('0'+n/10)) + string(rune('0'+n%10))
}
