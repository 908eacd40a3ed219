package text

import "testing"

func TestLanguagesAreGuessed(t *testing.T) {
	for text, want := range map[string]string{
		"We release the engine on Thursdays, after the tests of the night.": "en",
		"Wir veröffentlichen am Donnerstag, nach den Tests der Nacht.":      "de",
		"Nous publions le jeudi, après les tests de la nuit.":               "fr",
		"Publicamos el jueves, después de las pruebas de la noche.":         "es",
		"我们星期四在夜间测试之后发布。":                                                   "Han",
		"夜間テストの後、木曜日にリリースします。":                                              "Kana",
		"Мы выпускаем по четвергам, после ночных тестов.":                   "Cyrillic",
		"목요일에 배포합니다.":                                                       "Hangul",
		"PostgreSQL 16":                                                     "Latin", "": "", "12:30, 14.5": "",
		"用 PostgreSQL 存储数据": "Han",
	} {
		if got := Language(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if len(languages) != len(lightWords) {
		t.Errorf("%d names for %d languages, want the same", len(languages), len(lightWords))
	}
}

func TestFunctionWords(t *testing.T) {
	for _, test := range []struct {
		term, language string
		want           bool
	}{
		{"the", "en", true}, {"the", "de", true}, {"hat", "de", true}, {"hat", "en", false}, {"deploy", "en", false},
		{"的是", "Han", true}, {"部署", "Han", false},
	} {
		if got := IsFunctionWord(test.term, test.language); got != test.want {
			t.Errorf("%q in %s: got %v, want %v", test.term, test.language, got, test.want)
		}
	}
}
