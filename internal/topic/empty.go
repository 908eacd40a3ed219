package topic

import (
	"strings"
	"sync"

	"github.com/souvenir-ai/souvenir/internal/text"
)

// empty are words that, like the function words of searches, are never the subject of a group of texts: auxiliary and
// other common verbs, adverbs, numbers, days and months, and words of time and amount. Searches may still be for them.
// A word of one language is left out in all, since the language of a short text is a guess.
var empty = []string{
	// English
	`able above across actually add added again against ago almost alone along already also although always among
		another any anyone anything anyway apart april around ask asked august away back bad become becomes before
		began begin behind below beside besides best better between beyond big bigger both bring brings call called
		came can cannot change changed come comes coming currently day days december different done down each early
		eight either else end enough entirely especially even ever every everyone everything exactly except far
		february few finally find fine first five follow following follows former found four friday full further
		gave get gets getting give given gives giving goes going gone good got great had half happen happened
		happening happens hard hardly he'd held help helps hence here himself hold holds hour hours however hundred
		i'd i'll instead it'd it'll itself january july june just keep keeps kept kg kind km knew know known knows
		large last late later latter least leave less let let's like likely little long longer look looks lot lots
		made main mainly make makes making many march matter maybe mean means meant meanwhile merely million min
		minute minutes monday month months more moreover most mostly move moved ms much myself near nearly need
		needed needs neither never nevertheless new next nine none nor normally nothing november now nowhere
		number october often old once one ones only onto other others otherwise ought ourselves out outside over own
		part particular people per perhaps person piece place please plus possible probably put quite rather read
		ready really reason right said same saturday saw say saying says sec second see seem seems seen send sent
		september set sets seven several short shown shows side simply since six small someone something
		sometimes somewhere soon still stop such sunday sure take taken takes taking tell ten thing things think
		third though thousand three through throughout thursday thus till time times today together told tomorrow
		tonight too took toward towards tried tries try tuesday turn twice two under unless unlike until up upon use
		used useful uses using usually various very via want wanted wants way ways we'd we'll we're we've wednesday
		week weeks well went whenever whereas wherever whether while whole within without wrong yeah year
		years yes yesterday yet`,
	// German
	`abend abends aber acht alle allein allem allen aller alles als ander andere anderem anderen anderer anderes
		anders anfang ans auf außer außerdem bald bei beide beiden beim beinahe bekommen bereits besonders besser
		bevor bin bis bisher bist bleibe bleiben bleibt brauchen braucht bringen bringt da dabei dadurch dafür
		dagegen daher dahin damals damit danach daneben dann daran darauf daraus darin darum darunter darüber davon
		davor dazu dein deine demnach denen dennoch derartig deren derselbe deshalb dessen desto deswegen dezember
		dienstag diese dieselbe diesem diesen dieser dieses doch donnerstag dort drei dritte durch durften eben
		ebenso ehe eher eigen eigentlich einfach einig einige einigen einiger einiges einmal einzig ende endlich
		entweder erst erste ersten erster es etwa etwas euch euer eure falls fast februar finden findet freitag
		früher fünf für gab ganz ganze ganzen gar geben gegen gegenüber gehen geht gehört gemacht genau genug gerade
		gern gesagt gewesen gewisse gibt gilt gleich groß große großen gut gute guten habe haben halb halten hatte
		hatten heißt her heute hier hin hinter hält hätte ihre ihrem ihren ihrer immer indem ins insgesamt irgend ja
		jahr jahre jahren januar jede jedem jeden jeder jedes jedoch jene jetzt jeweils juli juni kam kaum keine
		kennen klein kleine kommen kommt konnte konnten kurz könnte lange langsam lassen leicht leider letzte
		letzten lieber liegt los lässt machen macht mag mal manche mehr meine meinem meinen meiner meist meisten
		minuten mit mittag mittwoch monat monate montag morgen morgens musste muß märz möchte möglich nachdem
		nachher nah neben nehmen nein neu neue neuen neun nicht nichts nie niemand nimmt nirgends nun nächste
		nächsten nämlich oben obwohl oft ohne oktober paar recht rund sache sagen sagt sah samstag samt schlecht
		schließlich sechs sehen sehr seid seine seinem seinen seiner seit seitdem selber selbst setzen sich sicher
		sieben sieht sodass sofort sogar solange solche solchen solcher somit sondern sonntag sonst sowie später
		statt stehen steht stellt stunde stunden tag tage tagen teil trotz trotzdem tun tut uhr umso ungefähr uns
		unser unsere unseren unserer unten vergangen vielleicht vier voll vorbei vorher vormittag völlig war ward
		waren warum weder weg wegen weil weit weiter weitere weiteren weiterhin wenig weniger wenigstens werde
		werden wessen wichtig wieder will wirklich wissen wo woche wochen wofür woher wohin wohl wollen wollte
		worden wurde während wäre würde würden zehn zeit ziemlich zudem zuerst zugleich zuletzt zunächst zurück
		zusammen zwar zwei zweite zwischen überall überhaupt übrigens`,
	// Spanish
	`abajo abril acerca adelante además agosto ahora ahí algo alguien alguna algunas alguno algunos algún allá
		allí alrededor ambos antes apenas aquel aquella aquellos aquí arriba así aunque ayer año años aún bajo
		bastante bien buen buena bueno cada casi cerca cierta cierto cinco claro como con contra cosa cosas cuatro
		cuya cuyo cómo dar debajo debido decir dejar delante demás dentro después detrás dice dicho diciembre dieron
		diez dijo domingo dos durante día días ella ellas ello ellos embargo encima encuentra enero entonces entre
		era eran eras eres eso esos estaba estaban estado estamos estar estas estos estoy existe febrero fin forma
		fuera fueron gran grande haber habla había habían hacen hacia hago hecho hemos hicieron hizo hora horas hoy
		igual incluso ir jamás jueves julio junio junto lado largo lejos llegar llegó lleva luego lugar lunes manera
		martes marzo mayo mayor mañana medio mejor menor menos mes meses mientras minutos misma mismas mismo mismos
		miércoles modo momento mucha muchas mucho muchos mía nada nadie ninguna ninguno nosotras nosotros noviembre
		nuestra nuestras nuestro nuestros nueva nuevas nueve nuevo nuevos nunca ocho octubre otra otras otro otros
		parece parte partir peor pero poca pocas poco pocos podemos poder podría poner primer primera primero pronto
		propia propio próximo pudo pues puse puso queda quería quiere quizá realizar realmente sabe saber salvo sea
		sean seguir segunda segundo según seis semana semanas septiembre será serán sería sido siempre siendo siete
		sigue siguiente sino sola solamente solo somos soy sra suya suyo sábado sé sólo tal también tampoco tan
		tanta tanto tarde tendrá tener tenga tengo tenía teníamos tercera tiempo toda todas todavía todo todos tomar
		tras través tres tuvo unas unos usted ustedes va vamos van varias varios veces ver verdad vez viernes
		vosotros voy vuestra vuestro última último`,
	// French
	`afin ailleurs ainsi alors août après assez aucun aucune aujourd'hui auprès auquel aura auraient aurait aussi
		aussitôt autant autour autre autrement autres avaient avait avant avoir avons avril ayant beaucoup bientôt
		bon bonne car cela celle celles celui cependant certain certaine certains cet ceux chacun chaque chez ci
		cinq comme contre côté d'accord dedans dehors demain depuis dernier dernière derrière dessous dessus deux
		devant devenir devrait différent dimanche dire dit dix doit doivent donc donne donner dont durant début
		décembre déjà désormais effet elle elles encore enfin ensemble ensuite environ eu eux faire fait faut fois
		font fut février grand hors huit ici ils jamais janvier jeudi jour jours juillet juin jusqu'à jusque
		laquelle lequel lesquels lors lorsque lui lundi là mai maintenant mais malgré mardi mars mercredi met mettre
		mieux mille moins mois moment mot même mêmes n'est neuf ni nombreux nos notamment notre nouveau nouveaux
		nouvelle novembre nôtre octobre on onze or oui où par parce parfois parler parmi partie partout pendant
		personne petit petite peu peut peuvent plein plupart plusieurs plutôt point pour pourtant pouvoir premier
		première prendre presque prochain près puis puisque quand quant quatre quelqu'un quelque quelquefois
		quelques quinze quoique rien s'est samedi sans sauf savoir se selon semaine semaines semble sept septembre
		sera serait seront seul seule seulement si sinon soi soir soit sommes sont soudain souvent suis suivant
		surtout tard tel telle tellement temps tenir toujours tous tout toute toutefois toutes trois trop trouver
		très tôt vais vas vendredi vers veut veux voici voilà voir vont vos votre vraiment vu vue étaient étais
		était étant été êtes être`,
	// Italian
	`abbastanza abbia abbiamo accanto adesso affinché agli ai alcuna alcuni alcuno all' allora almeno altra altre
		altri altro anche ancora anni anno appena aprile assai attraverso avanti avendo aver avere aveva avevano
		bene breve buona buono caso certa certo ciascuno cinque cioè circa ciò contro così cui dai dal dalla dalle
		davanti davvero de deve devono dicembre dietro diventa domani domenica dopo dove dovrebbe due dunque e' ecco
		egli entro erano essa esse essendo esserci essere essi fa facendo fare fatto febbraio finché fino forse
		fosse fra fu fuori gennaio giorni giorno giovedì giugno già giù gli grandi ha ho i ieri il improvviso in
		infatti infine inoltre insieme invece io lei li loro luglio lunedì lungo lì ma maggio male martedì meglio
		meno mentre mercoledì mese mesi mezzo mi mia mie miei mio molta molte molti molto neanche nei nella nelle
		nemmeno nessuna nessuno niente noi nome nostra nostri nostro nove nulla nuova nuovi nuovo nè o oggi ogni
		ognuno oltre oppure ora ore otto ottobre pare parecchio peggio persone però piccolo più pochi poi poiché
		posto potrebbe prendere presso prima primo proprio pure può qua qualche qualcosa qualcuno qualsiasi quanta
		quanti quanto quasi quattro quella quelle quelli quello questa queste questi questo qui quindi sabato
		sarebbe sarà sei sembra sempre senza sette settembre settimana settimane sia siamo sopra sotto spesso stata
		state stati stato stesso stia su sua subito sue sugli sui sul sulla suo suoi tale te tempo ti tra tre troppo
		tua tue tuo tutta tuttavia tutte tutti tutto ultimo una uno vai vari venerdì vero verso vicino viene voi
		volta volte vostra vostro`,
	// Portuguese
	`acima agora ainda algum alguma algumas alguns alguém ali além amanhã ampla amplo ano anos ao aos após aquela
		aquelas aquele aqueles aqui aquilo assim através atrás até baixo bem boa bom cedo cima coisa coisas com
		contudo cuja cujo daquele debaixo dela dele deles demais depois desde dessa desse desta deste devem dez
		dezembro dia dias disse disso diz dizer dois duas ela elas ele eles embora enquanto então eram essas esses
		esta estava estavam este estes esteve estive estou estão faz fazer fazia feita feito fevereiro ficar fim
		fora foram geral haja havia hoje há isso isto janeiro julho junho já lhe lhes logo longe lá maio maior
		maioria manhã março mas meio melhor mesma mesmas mesmo mesmos meu meus minha minhas muita muitas muito
		muitos mês nem nenhum nenhuma nessa nesse nesta neste ninguém nossa nossas nosso nossos nova novas novembro
		novo novos num numa não nível nós oito onde ontem ou outra outras outro outros outubro pela pelas pelo pelos
		perante perto pessoa pessoas pode podem pois ponto pouca poucas pouco poucos primeira primeiro própria
		próprio pude põe qualquer quarto quase quatro quer quero quinto seja sem sendo ser seria sete setembro seu
		seus sexto sim sob sobre sou suas são talvez também tendes tenha tenho ter terceira teu teus teve tinha tive
		todavia três tuas tudo tão um umas usa usar vem verdade vezes você vocês vosso várias vários vão`,
	// Dutch
	`aan aangaande aantal achter af al aldus alleen alsof altijd augustus avond ben beneden bent beter bij bijna
		bijvoorbeeld binnen blijft blijven boven buiten daar daarbij daardoor daarin daarmee daarna daarom daarop
		daarvan dag dagen dan dank deed deel denk denken deze dezelfde dicht dinsdag doe doen doet donderdag door
		dus echt echter een eens eerst eerste eigenlijk elk elke enige enkel enkele er erg ergens februari ga gaan
		gaat gebruik gebruiken gebruikt gedaan geef geeft geen gehad geleden geven geweest gewoon gezegd ging goed
		goede groot grote haar hadden heb hebben hebt heeft heel heen hele helemaal hem hen hij hoeveel hun iedere
		iedereen iemand iets ik ineens inmiddels jaar januari jaren je jij jou jouw jullie kan komen komt kon konden
		kort krijgen krijgt kun kunnen kunt laat laatste lang langer laten liever maak maakt maand maandag maanden
		maar maart maken mee meer meest meestal mei men mensen mij mijn minder misschien moest moet moeten mogelijk
		naast nadat namelijk nee neem negen nergens net niets nieuw nieuwe nieuws nodig nog nogal nooit nu ofwel
		omdat ondanks onder ons ooit ook opnieuw overal pas plaats precies samen sinds slechts snel sommige soms
		staan staat steeds stuk tegen tenzij terug terwijl thuis tijd tijdens toch toen tot totdat tussen twaalf
		twee u uit uur uw vaak vanaf vandaag veel verder verschillende vijf volgende volgens vooral voorbij vrij
		vrijdag vroeg waarbij waarin waarmee waarop waarvan wanneer was weer weinig weken wel welke werd weten wie
		wij wil willen wilt woensdag word wordt zal zaterdag zeer zeggen zegt zelf zelfde zelfs zes zeven zich zien
		ziet zij zijn zo zoals zoiets zondag zonder zou zouden zullen`,
	// Russian
	`без более больше будет будто будут бывает быть вам вами вас ваш ваша ваши вдруг ведь весь вместе вниз внизу
		вокруг вообще вот впрочем времени время все всегда всего всем всех всю вся всё второй вчера говорит год года
		году два две день для дней дня другая другие другим другое другой его едва ее ей ему если есть еще ещё её
		завтра зато здесь имеет именно иметь ими имя иногда иных каждая каждое каждый кажется каким конечно которого
		которое которой котором которые который которых кроме кругом куда лет лишь лучше между менее меньше меня
		месяц месяца мимо мне много может можно мои мой мол моя над надо наконец нам нами нас наш наша наше наши
		него недавно неделю неделя нее ней некоторые нельзя несколько нет неё нибудь никогда ним них ничего новая
		новое новые новый ну нужно нём об обычно один одна однако одни одно около опять особенно отчего очень первая
		первый перед под пока после потом потому почти при примерно про просто против раз разве рано раньше сам сама
		сами само самый свое своего своей свои свой свою своё себе себя сегодня сейчас сказал сказать скоро слишком
		словно снова совсем сразу стал стала стали стало столько суть такая также такие такое такой там твой твоя
		тебе тебя тем теперь тех тогда того тоже той только том тому тот точно три тут хорошо хоть хотя часа часов
		часто чего чем чему через четыре чтоб чтобы чуть эта эти этих этого этой этом этому этот эту`,
}

// emptyTerms are the words of empty as terms.
var emptyTerms = sync.OnceValue(func() map[string]bool {
	set := map[string]bool{}
	for _, list := range empty {
		for _, word := range strings.Fields(list) {
			if terms := text.Terms(word); len(terms) > 0 {
				set[terms[len(terms)-1]] = true
			}
		}
	}
	return set
})

// saysNothing reports whether a term cannot be a subject in a text of a language.
func saysNothing(term, language string) bool {
	return emptyTerms()[term] || text.IsFunctionWord(term, language)
}
