"""Training text: short statements, notes and questions of the kind that a memory stores, made from frames.

All of it is written here, so no licence but the project's own applies. Frames carry the grammar, slots the
meaning; {any} is filled with words of the vocabulary, which brings every word into a sentence.
"""
import random
import re

SLOTS = {
    "name": "Anna Ben Carla David Elena Farid Grace Hugo Ines Jack Keiko Liam Maria Noah Olga Pablo Quinn Rosa Sam Tara Uma Victor "
            "Wendy Xavier Yusuf Zoe Amir Bella Chen Diego Emma Felix Gina Hassan Iris Jonas Kate Leo Mia Nina Oscar Priya Rachel Steve "
            "Tom Vera Will Yara Alice Bob Charlotte Daniel Emily Frank George Hannah Isaac Julia Kevin Laura Michael Nora Oliver Paul "
            "Robert Sarah Thomas James John Mary Linda Peter Mark Susan Lisa Jessica Ashley Matt Chris Alex Jamie Jordan Taylor",
    "relative": "mother|father|mom|dad|sister|brother|wife|husband|partner|grandmother|grandma|grandfather|grandpa|aunt|uncle|cousin|niece|"
                "nephew|son|daughter|kids|children|parents|family|girlfriend|boyfriend|fiancé|friend|best friend|neighbor|roommate|boss|"
                "coworker|colleague|manager|teacher|coach|doctor|therapist|mentor|landlord|classmate|teammate|twin|baby|in-laws|ex",
    "place": "Paris|London|Tokyo|New York|Boston|Chicago|Seattle|Berlin|Rome|Madrid|Lisbon|Athens|Cairo|Delhi|Mumbai|Beijing|Seoul|Sydney|"
             "Toronto|Mexico|Brazil|Peru|Italy|Spain|France|Germany|Greece|Japan|China|India|Kenya|Canada|Australia|Ireland|Scotland|Norway|"
             "Sweden|Switzerland|Texas|California|Florida|Hawaii|Alaska|Oregon|Colorado|the beach|the mountains|the lake|the forest|"
             "the park|the zoo|the museum|the library|the gym|the hospital|the office|the airport|the station|the market|the mall|the farm|"
             "the desert|the island|the village|the city|downtown|the countryside|the river|the church|the school|the university|"
             "the restaurant|the cafe|the bakery|the theater|the stadium|the studio|the gallery|the garden|the shelter|the campsite|"
             "the national park|the waterfall|the castle|the harbor|home|abroad|the community center|the clinic|the pharmacy|the bank",
    "activity": "hiking|running|swimming|camping|painting|drawing|reading|writing|cooking|baking|gardening|dancing|singing|skiing|"
                "snowboarding|surfing|sailing|kayaking|fishing|climbing|cycling|biking|yoga|meditation|pilates|boxing|karate|tennis|soccer|"
                "football|basketball|baseball|volleyball|hockey|golf|chess|poker|board games|video games|photography|pottery|ceramics|knitting|"
                "sewing|woodworking|carpentry|birdwatching|stargazing|astronomy|volunteering|mentoring|tutoring|coding|programming|blogging|"
                "journaling|podcasting|acting|improv|comedy|playing the piano|playing the guitar|playing the violin|playing drums|"
                "learning Spanish|learning French|learning Japanese|studying|shopping|travelling|road trips|roller skating|ice skating|"
                "horse riding|archery|calligraphy|origami|beekeeping|weightlifting|crossfit|stretching|walking the dog|scuba diving|snorkeling|"
                "rafting|collecting stamps|collecting coins|restoring cars|repairing bikes|scrapbooking|quilting|candle making|brewing beer|"
                "making wine|playing Dungeons and Dragons|watching movies|watching anime|listening to podcasts|going to concerts",
    "food": "pizza|pasta|sushi|ramen|tacos|burgers|salad|soup|curry|rice|noodles|bread|cheese|eggs|bacon|pancakes|waffles|cake|cookies|"
            "chocolate|ice cream|apple pie|brownies|muffins|donuts|fruit|apples|bananas|oranges|strawberries|blueberries|grapes|mango|"
            "avocado|tomatoes|potatoes|carrots|onions|garlic|mushrooms|spinach|broccoli|beans|lentils|tofu|chicken|beef|pork|turkey|salmon|"
            "tuna|shrimp|lobster|steak|sausage|coffee|espresso|tea|green tea|wine|beer|juice|lemonade|milk|oat milk|yogurt|honey|peanut butter|"
            "peanuts|almonds|nuts|gluten|dairy|sugar|spicy food|seafood|vegan food|a sandwich|a smoothie|breakfast|lunch|dinner|dessert|barbecue",
    "animal": "dog|puppy|cat|kitten|rabbit|hamster|guinea pig|parrot|bird|horse|pony|cow|goat|sheep|pig|chicken|duck|turtle|tortoise|snake|"
              "lizard|gecko|fish|goldfish|ferret|hedgehog|owl|eagle|fox|deer|bear|wolf|squirrel|frog|bee|butterfly|spider|whale|dolphin|"
              "elephant|lion|tiger|monkey|penguin|golden retriever|labrador|poodle|beagle|husky|corgi|tabby",
    "thing": "book|novel|guitar|piano|violin|camera|laptop|phone|computer|tablet|keyboard|monitor|printer|car|bike|motorcycle|truck|van|boat|"
             "tent|backpack|suitcase|jacket|coat|dress|shoes|boots|sneakers|hat|scarf|watch|necklace|ring|bracelet|earrings|glasses|"
             "painting|poster|photo album|mug|bowl|vase|candle|lamp|sofa|couch|chair|table|desk|bed|mattress|fridge|oven|dishwasher|"
             "washing machine|vacuum|toy|doll|puzzle|board game|console|headphones|speaker|microphone|record player|vinyl record|ticket|"
             "passport|wallet|key|umbrella|blanket|pillow|rug|curtain|plant|flower|rose|tree|sculpture|trophy|medal|diary|notebook|pen|"
             "letter|postcard|gift|card|bag|purse|helmet|skateboard|surfboard|kayak|telescope|drone|bicycle|scooter|house|apartment|cabin|"
             "shed|garage|kitchen|bathroom|roof|fence|garden|pool|engine|tire|battery|charger|tool|hammer|drill|ladder|stroller|crib",
    "job": "nurse|doctor|teacher|engineer|software developer|designer|lawyer|accountant|chef|cook|waiter|barista|baker|farmer|gardener|"
           "carpenter|plumber|electrician|mechanic|pilot|driver|police officer|firefighter|soldier|scientist|researcher|professor|librarian|"
           "journalist|writer|editor|artist|musician|actor|dancer|photographer|architect|therapist|counselor|social worker|psychologist|"
           "dentist|veterinarian|pharmacist|salesperson|cashier|manager|consultant|analyst|data scientist|banker|entrepreneur|coach|"
           "personal trainer|translator|tour guide|flight attendant|receptionist|intern|student|volunteer|barber|hairdresser|tailor",
    "topic": "climate change|politics|religion|education|health|mental health|fitness|nutrition|sleep|stress|anxiety|depression|therapy|"
             "parenting|adoption|pregnancy|marriage|divorce|dating|friendship|loneliness|grief|retirement|money|saving money|investing|taxes|"
             "insurance|mortgage|rent|debt|a loan|a scholarship|a promotion|a raise|layoffs|unemployment|starting a business|startups|marketing|"
             "technology|artificial intelligence|robots|space|science|physics|chemistry|biology|mathematics|history|philosophy|literature|"
             "poetry|art|music|jazz|rock music|classical music|film|theater|fashion|sports|the Olympics|the environment|recycling|wildlife|"
             "gender identity|LGBTQ rights|human rights|racism|equality|immigration|war|peace|charity|homelessness|poverty|veterans|animals|"
             "self-care|mindfulness|happiness|success|failure|motivation|confidence|courage|faith|hope|love|dreams|memories|childhood|school|"
             "college|exams|homework|traffic|weather|the news|an accident|an injury|surgery|cancer|diabetes|allergies|asthma|a cold|the flu|"
             "a headache|back pain|a broken leg|a vaccine|medicine|a diet|losing weight|quitting smoking|fantasy novels|science fiction",
    "event": "birthday party|wedding|funeral|graduation|concert|festival|conference|workshop|meeting|interview|exam|race|marathon|tournament|"
             "game|match|competition|charity run|fundraiser|parade|pride parade|protest|exhibition|art show|play|recital|book club|support group|"
             "reunion|baby shower|housewarming|anniversary|holiday|vacation|road trip|camping trip|business trip|flight|appointment|checkup|"
             "date|dinner|picnic|barbecue|class|lesson|lecture|seminar|retreat|volunteer event|open mic|auction|fair|farmers market|"
             "Christmas|Thanksgiving|Easter|Halloween|New Year's Eve|Ramadan|Diwali|Hanukkah|Valentine's Day|Mother's Day|summer camp",
    "feeling": "happy|sad|angry|excited|nervous|anxious|proud|grateful|thankful|tired|exhausted|stressed|overwhelmed|relaxed|calm|peaceful|"
               "lonely|bored|confused|surprised|shocked|disappointed|frustrated|embarrassed|jealous|guilty|hopeful|inspired|motivated|confident|"
               "scared|worried|relieved|curious|nostalgic|homesick|sick|great|awful|amazing|terrible|fantastic|better|worse|free|accepted|loved",
    "adj": "old|new|big|small|red|blue|green|yellow|black|white|pink|purple|orange|brown|beautiful|ugly|cheap|expensive|broken|lovely|cozy|"
           "huge|tiny|heavy|light|fast|slow|soft|hard|loud|quiet|warm|cold|hot|fresh|delicious|awesome|interesting|boring|difficult|easy|"
           "important|strange|funny|serious|famous|local|foreign|handmade|wooden|digital|free|rare|special|favorite|first|second|last|next",
    "when": "yesterday|today|tomorrow|last night|last week|last month|last year|last summer|last winter|last Friday|this morning|this weekend|"
            "this week|next week|next month|next year|next summer|on Monday|on Tuesday|on Wednesday|on Thursday|on Friday|on Saturday|on Sunday|"
            "in January|in February|in March|in April|in May|in June|in July|in August|in September|in October|in November|in December|"
            "two days ago|three weeks ago|a month ago|ten years ago|recently|a while ago|in 2019|in 2020|in 2021|in 2022|in 2023|in 2024|soon|"
            "at noon|at 7 pm|at night|every day|every week|every Sunday|in the evening|since 2015|for two years|during the holidays",
    "month": "January|February|March|April|May|June|July|August|September|October|November|December",
    "number": "2|3|4|5|6|7|8|10|12|15|20|25|30|50|100|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|fifty|a hundred",
    "tech": "Postgres|SQLite|MySQL|Redis|Docker|Kubernetes|Linux|Windows|macOS|Python|Go|Rust|Java|JavaScript|TypeScript|React|Vue|Django|"
            "Flask|Node.js|GraphQL|REST|gRPC|OAuth|JWT|TLS|HTTP|DNS|nginx|Kafka|RabbitMQ|Terraform|AWS|Azure|GitHub|GitLab|Git|Jenkins|CI|"
            "Prometheus|Grafana|Elasticsearch|MongoDB|PyTorch|TensorFlow|NumPy|pandas|CSS|HTML|Markdown|YAML|JSON|Bash|vim|VS Code|WebAssembly",
    "part": "database|server|client|API|endpoint|cache|queue|worker|scheduler|login page|dashboard|parser|compiler|tokenizer|index|search|"
            "migration|schema|table|column|query|transaction|connection pool|thread|lock|memory leak|unit test|integration test|build|pipeline|"
            "deployment|release|rollback|config file|environment variable|secret|API key|password|certificate|firewall|load balancer|proxy|"
            "log|metric|alert|backup|disk|file|folder|branch|commit|pull request|merge conflict|issue|bug|feature flag|function|method|class|"
            "interface|package|module|dependency|library|framework|plugin|script|command line|button|form|menu|chart|notification|email|webhook",
    "do": "fix|rewrite|test|deploy|review|merge|delete|rename|refactor|document|cache|encrypt|compress|migrate|monitor|restart|upgrade|"
          "downgrade|benchmark|optimize|profile|debug|configure|install|remove|replace|split|copy|move|import|export|back up|restore|lock|close|open",
    "problem": "crashes|times out|is slow|returns 500|fails|hangs|leaks memory|loses data|is missing|is out of date|blocks the release|"
               "throws an exception|deadlocks|is flaky|uses too much CPU|fills the disk|rejects valid input|shows the wrong result|is broken",
    "pref": "dark mode|short answers|tabs|spaces|metric units|vegetarian meals|window seats|early meetings|working from home|email|phone calls|"
            "paperbacks|audiobooks|night shifts|mornings|quiet places|big cities|small towns|public transport|green tea|black coffee|table tests",
}
SLOTS = {k: v.split("|") if "|" in v else v.split() for k, v in SLOTS.items()}

# A statement and questions that it answers; both see the same fillings.
FRAMES = [
    ("My {relative} gave me a {adj} {thing} {when}.", "What did my {relative} give me?|Who gave me the {thing}?"),
    ("{name} bought a {adj} {thing} {when}.", "What did {name} buy?|When did {name} buy the {thing}?"),
    ("I went to {place} with my {relative} {when}.", "Where did I go with my {relative}?|When did I go to {place}?"),
    ("{name} moved from {place} {number} years ago.", "Where did {name} move from?|How long ago did {name} move?"),
    ("We're planning a trip to {place} {when}.", "What trip are we planning?|When is the trip to {place}?"),
    ("{name} works as a {job} in {place}.", "What is {name}'s job?|Where does {name} work?|Who is a {job}?"),
    ("I used to be a {job}, but now I'm a {job2}.", "What was my job before?|What do I do for work?"),
    ("{name} has {number} kids and a {animal}.", "How many children does {name} have?|What pet does {name} have?"),
    ("My {animal} is called {name}.", "What is the name of my {animal}?|Who is {name}?"),
    ("I adopted a {animal} from the shelter {when}, and I'm so {feeling}!", "When did I adopt the {animal}?|What pet did I adopt?"),
    ("{name} loves {activity} and {activity2}.", "What are {name}'s hobbies?|What does {name} like to do?"),
    ("I started {activity} {when} because it helps me with {topic}.", "When did I start {activity}?|Why did I take up {activity}?"),
    ("{name} signed up for a {activity} class {when}.", "What class did {name} sign up for?|When did {name} sign up for the class?"),
    ("I'm allergic to {food}.", "What am I allergic to?|Can I eat {food}?"),
    ("{name} can't stand {food}, but loves {food2}.", "What food does {name} dislike?|What is {name}'s favorite food?"),
    ("We made {food} and {food2} for dinner {when}, it was {feeling}.", "What did we cook for dinner?|When did we make {food}?"),
    ("My favorite food is {food}.", "What is my favorite food?"),
    ("{name} is reading a book about {topic}.", "What is {name} reading?|Who is reading about {topic}?"),
    ("I felt {feeling} after the {event} {when}.", "How did I feel after the {event}?|When was the {event}?"),
    ("The {event} is on {number} {month} at {place}.", "When is the {event}?|Where is the {event}?"),
    ("{name} and {name2} are going to the {event} {when}.", "Who is going to the {event}?|What event will {name} and {name2} attend?"),
    ("{name} won first place in the {event}!", "What did {name} win?|Who won the {event}?"),
    ("I spoke at a {event} about {topic} {when}.", "What did I speak about?|When did I give a talk about {topic}?"),
    ("{name}'s {relative} passed away {when}.", "When did {name}'s {relative} die?|Who died?"),
    ("{name} got married {when} in {place}.", "When did {name} get married?|Where was {name}'s wedding?"),
    ("{name} is worried about {topic}.", "What is {name} worried about?|Who worries about {topic}?"),
    ("I've been dealing with {topic} lately, and it makes me {feeling}.", "What have I been struggling with?|How does {topic} make me feel?"),
    ("Talking about {topic} with my {relative} made me {feeling}.", "Who did I talk to about {topic}?|How did the talk make me feel?"),
    ("{name} wants to become a {job}.", "What does {name} want to be?|What is {name}'s dream job?"),
    ("My {relative} lives in {place}.", "Where does my {relative} live?|Who lives in {place}?"),
    ("{name} lost the {thing} at {place} {when}.", "What did {name} lose?|Where did {name} lose the {thing}?"),
    ("The {thing} I ordered arrived {when}, it's {adj} and {adj2}.", "When did the {thing} arrive?|What did I order?"),
    ("I painted a {adj} {animal} for the {event}.", "What did I paint?|What was the painting for?"),
    ("Hey {name}! Good to see you! How have you been?", "How is {name} doing?"),
    ("Wow, that's {feeling}! I love {activity} too.", "Who loves {activity}?"),
    ("Thanks {name}, that means a lot to me. I was so {feeling} about the {event}.", "How did I feel about the {event}?"),
    ("Yeah, {activity} is a great way to unwind after work.", "How do I relax?|What helps me unwind?"),
    ("That sounds {feeling}, {name}! What kind of {thing} did you get?", "What did I get?"),
    ("No way! I didn't know that you like {topic}.", "What do I like?"),
    ("Here's a picture of the {adj} {thing} we saw at {place}.", "What picture did I share?|What did we see at {place}?"),
    ("I took this photo of a {animal} at {place} {when}. [shared image: a photo of a {animal} near a {thing}]", "What is in the photo?|Where did I take the photo?"),
    ("[shared image: a photo of a {adj} {thing} on a {thing2}]", "Which photo shows a {thing}?"),
    ("My {relative} taught me {activity} when I was {number}.", "Who taught me {activity}?|When did I learn {activity}?"),
    ("The kids loved {activity} at {place}.", "What did the kids enjoy?|Where did the kids go {activity}?"),
    ("I'm saving money to buy a {adj} {thing}.", "What am I saving for?"),
    ("{name} broke a leg while {activity}.", "How did {name} get hurt?|What happened to {name}?"),
    ("My doctor told me to avoid {food} and get more sleep.", "What did the doctor say?|What should I avoid eating?"),
    ("I have an appointment with the {job} {when}.", "When is my appointment?|Who am I seeing?"),
    ("{name} prefers {pref} to {pref2}.", "What does {name} prefer?"),
    ("I prefer {pref}; please remember that.", "What are my preferences?|Do I like {pref}?"),
    ("Don't remind me about {topic}.", "What should you not mention?"),
    ("My goal for this year is to get better at {activity}.", "What is my goal?|What do I want to improve?"),
    ("We decided to use {tech} instead of {tech2} for the {part}.", "Why not {tech2}?|Which technology did we choose for the {part}?"),
    ("The {part} {problem} when we {do} the {part2}.", "What happens when we {do} the {part2}?|Why does the {part} fail?"),
    ("TODO: {do} the {part} before the release {when}.", "What must be done before the release?|What is left to do about the {part}?"),
    ("{name} will {do} the {part} {when}.", "Who will {do} the {part}?|When will the {part} be ready?"),
    ("Always {do} the {part} before you {do2} the {part2}.", "What is the rule about the {part}?|What comes before the {part2}?"),
    ("Never {do} the {part} on Fridays.", "When should the {part} not be touched?"),
    ("Bug: the {part} {problem} on {tech}.", "What bug do we have on {tech}?|What is wrong with the {part}?"),
    ("The {part} is written in {tech} and stores its data in {tech2}.", "What language is the {part} written in?|Where is the data stored?"),
    ("The {part} listens on port {number}.", "Which port does the {part} use?"),
    ("Set the {part} to {number} seconds, otherwise it {problem}.", "What is the timeout of the {part}?"),
    ("We had a meeting with {name} about the {part}.", "What was the meeting about?|Who was at the meeting?"),
    ("The customer in {place} complained that the {part} {problem}.", "What did the customer complain about?"),
    ("To {do} the {part}, run the script in the {part2}.", "How do I {do} the {part}?"),
]
LOOSE = [
    "{any}", "{any} {any2}", "{any} {any2} {any3}", "the {any} of {any2}", "What is {any}?", "a {adj} {any}", "{name} likes {any}.",
    "I read about {any} and {any2} {when}.", "We talked about {any}.", "The {any} was {any2}.", "{any} is a kind of {any2}.",
    "My {relative} mentioned {any} {when}.", "{any} in {place}", "It has to do with {any}, {any2} and {any3}.", "{name}: {any}? {any2}!",
    "How does {any} work?", "Where can I find {any}?", "{any} {any2} {any3} {any4} {any5}", "Tell me about {any} and {any2}.",
    "I don't know much about {any}, but {any2} is {feeling}.", "When did {name} talk about {any}?", "a photo of a {any} and a {any2}",
    "{name} said that {any} is {adj}.", "you should {any} the {any2}", "{any} and {any2} were there {when}.",
]
CHAT = """Hey {name}, long time no see! What's new with you?
I'm doing well, thanks for asking. How about you?
That's so {feeling} to hear, {name}. I'm really happy for you!
Oh no, I'm sorry to hear that. Is everything okay with your {relative}?
What a {adj} idea! Let me know how it goes.
I totally agree. {any} can be really hard to deal with sometimes.
Have you ever tried {activity}? It's a lot of fun.
I haven't had time for {activity} since we moved to {place}.
It was {feeling}, I never thought I would see a {any} like that.
How did it go? Did your {relative} like the {thing}?
Do you have any plans for the {event}?
Not yet, but I'm thinking about going to {place} with my {relative}.
Cool! Where did you get that {thing}?
I found it at {place}, it was only {number} dollars.
Sounds good, let's meet at {place} {when}.
I've always wanted to learn about {any}, but it seems so difficult.
She told me that the {any} was her {adj} memory from childhood.
He didn't know what to say when they gave him the {any}.
They have been together for {number} years and still love {activity}.
We could use some {any} in our lives right now, don't you think?
Since then I've been trying to focus on {any} and spend more time with my {relative}.
You should be proud of yourself, it takes a lot of {any} to do that.
Thank you for your support, it really helps me to talk about {topic}.
By the way, did I tell you about my {relative}'s {event}?
It reminds me of the time when we went {activity} in {place}.
My {relative} and I spent the whole day {activity}, and then we had {food}.
The best part was seeing all the {any} and {any2} up close.
Unfortunately it rained all day, so we stayed inside and watched a film about {any}.
I think {any} matters more than {any2}, but not everyone sees it that way.
Whenever I feel {feeling}, I go for a walk near {place} to clear my head.
I'm not sure whether I should quit my job as a {job}.
After {number} months of hard work, my {any} project is finally done.
It's been a rough week: first the {thing} broke, then I got {feeling} about the {any}.
Could you please help me with the {any}? I have no idea how it works.
Sure, just send me the details about the {any} and I'll take a look.
I'd love to see a picture of your {animal}!
Here is what it looks like, I made it with {any} and {any2}.
Good luck with the {event}! You've got this.
Have fun at the {event}, and say hi to {name} for me.
See you soon, take care!
Bye for now, talk to you later.
Why did you decide to become a {job}?
Because I grew up in {place}, where {any} is part of everyday life.
One of my favorite authors wrote a {adj} book on {any}.
The article says that {any} causes {any2}, according to a new study.
In the beginning it was hard, but now I can {any} without any help.
It doesn't matter if you fail, what matters is that you keep trying.
Let's not forget to bring {food} and a {thing} for the {event}.
There is nothing better than {food} and {activity} on a {adj} day.
The user asked for a summary of the {any} report and wants it {when}.
The user's {relative} is a {job} who enjoys {activity}.
Remember that the user does not eat {food}.
The assistant should answer briefly and avoid {any}.
Summary: {name} talked about {any}, {any2} and the {event} {when}.
Decision: we keep the {any} and drop the {any2} because of cost.
Note to self: call the {job} about the {any}.
The {part} needs {any} before it can {any2}.
If the {any} is empty, the function returns an error.
This module handles {any} and {any2} for the {part}.
The results show that {any} increases with {any2}, while the {any3} stays constant.
An analysis of the {any} of a {adj} {any2} under {any3} was carried out.
He was born in {place} in 19{number} and worked on {any}.
The company sells {any} and {any2} to customers in {place}.
The government announced new rules on {any} {when}.
Scientists have found a new way to use {any} in {any2}.
A man is playing with a {any} in {place}.
A woman is {activity} while a {animal} is sitting on the {thing}.
Two children are standing next to a {adj} {any}.
A {animal} is running through the {any}.
Someone is cutting {food} with a {any}.
The {any} is made of {any2}.
{name} asked whether the {any} was still available, and {name2} said no.
Both {name} and {name2} dislike {any}.
{name} has never been to {place} before.
{name} used to hate {any}, but has changed her mind.
{name} is going to give the {thing} back to {name2} {when}.
I can't believe it's already {month}! Time flies.
My {any} lesson starts at {number}:30, so I have to leave early.
It costs about {number} dollars a month, which is too much for a {any}.
Do you know how many {any} there are in the {any2}?
What would you do if you won a {any}?
What is the difference between {any} and {any2}?
How can I learn more about {any} and {topic}?
Is there a good {any} near {place}?
Who invented the {any}?
Would {name} be interested in {any}?
Which {any} did {name} see in {place}?
How long has {name} been {activity}?
What advice did {name} give about {any}?
How does {name} feel about {topic}?
Why is {name} so {feeling}?
What happened at the {event}?
What made {name} start with {any}?
What do {name} and {name2} have in common?
Does {name} have any {any}?
What might {name} do after the {event}?""".split("\n")
STAMPS = ["({hour}:{minute} {half} on {day} {month}, {year}) {name}: ", "[{year}-{mm}-{dd}] ", "{name}: ", "{name}: ", "", "", "", ""]


def fill(frame, r, fillings, words=None):
    def one(m):
        key = m.group(1)
        if key not in fillings:
            slot = key.rstrip("0123456789")
            if slot == "any":
                fillings[key] = r.choice(words)
            else:
                fillings[key] = {"hour": lambda: r.randint(1, 12), "minute": lambda: f"{r.randint(0, 59):02}", "half": lambda: r.choice(["am", "pm"]),
                                 "day": lambda: r.randint(1, 28), "year": lambda: r.randint(2018, 2026), "mm": lambda: f"{r.randint(1, 12):02}",
                                 "dd": lambda: f"{r.randint(1, 28):02}"}.get(slot, lambda: r.choice(SLOTS[slot]))()
        return str(fillings[key])
    return re.sub(r"\{([a-z]+\d?)\}", one, frame)


def statements(n, seed):
    """n (statement, question) pairs; a third of the statements are two turns long, half carry a stamp."""
    r, out = random.Random(seed), []
    for _ in range(n):
        frame, questions = r.choice(FRAMES)
        f = {}
        text = fill(frame, r, f)
        question = fill(r.choice(questions.split("|")), r, f)
        if r.random() < 0.33:
            other = fill(r.choice(FRAMES)[0], r, {})
            text = text + " " + other if r.random() < 0.5 else other + " " + text
        out.append((fill(r.choice(STAMPS), r, {}) + text, question))
    return out


def loose(words, n, seed):
    """n short texts that between them use every word about equally often."""
    return mixed(words, n, seed, [LOOSE], [1])


def mixed(words, n, seed, kinds=(CHAT, CHAT, CHAT, LOOSE, [f for f, _ in FRAMES]), lengths=(1, 1, 2, 2, 3), stamps=("",)):
    """n texts of one to three sentences; the open slots use every word about equally often."""
    r, out, deck = random.Random(seed), [], []

    def choose(xs):
        nonlocal deck
        if xs is not words:
            return r.choice(xs)
        if not deck:
            deck = list(words)
            r.shuffle(deck)
        return deck.pop()

    def pick(xs):
        return xs[0] if len(xs) == 1 else r.choice(xs)

    class Dealt:  # a random source that deals words from a shuffled deck
        choice = staticmethod(choose)
        randint = r.randint
    for _ in range(n):
        parts = [fill(r.choice(pick(kinds)), Dealt, {}, words) for _ in range(pick(lengths))]
        out.append(fill(pick(stamps), r, {}) + " ".join(parts))
    return out


def salad(words, n, seed):
    """n texts of one to four words, for languages that no frame here speaks."""
    r = random.Random(seed)
    return [" ".join(r.choice(words) for _ in range(r.randint(1, 4))) for _ in range(n)]
