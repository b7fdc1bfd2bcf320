//! Classification of an order, in English and German; names of JSON members in any language.

use std::sync::LazyLock;

use regex::Regex;

/// Signs of what an order asks for, and in which form.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one sign, and rules combine them"
)]
pub(super) struct OrderSigns {
    /// The user's data is to be changed.
    pub(super) change: bool,
    /// A text about a conversation is wanted, such as a title.
    pub(super) about: bool,
    /// Such a text, with the conversation named next to it.
    pub(super) of_conversation: bool,
    /// An emoji for a mood is wanted.
    pub(super) mood: bool,
    /// Names of JSON members for such a text.
    pub(super) keys: bool,
    /// JSON is wanted.
    pub(super) json: bool,
    /// Nothing else may be in the answer.
    pub(super) strict: bool,
    /// A number of words or characters is wanted.
    pub(super) length: bool,
}

const NUMBER: &str = "(?:\\d+|one|two|three|four|five|six|seven|eight|nine|ten|twelve|ein|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn)";
const TITLE: &str = "titles?|titel|headlines?|heading|subject lines?|betreff(?:zeile)?|überschrift|caption|topics?|themen|thema|tags?|keywords?|\
                     key words|labels?|categor(?:y|ies)|kategorien?|schlagw[oö]rt\\w*|stichw[oö]rt\\w*|\
                     (?:short|concise|descriptive|brief|suitable|fitting|kurzen|passenden|knappen|treffenden) namen?";
const OTHER: &str = "follow[- ]?ups?|(?:next|suggested|likely|possible|useful) (?:\\w+ )?(?:questions?|messages?|prompts?|repl(?:y|ies))|\
                     suggest(?:ed|ions?)?\\b[^.\\n]*(?:questions?|messages?|prompts?|repl(?:y|ies))|\
                     (?:questions?|messages?|prompts?) (?:that )?(?:the|this|a) (?:user|person) (?:might|may|could|would)|\
                     (?:search|web) (?:engine )?(?:quer(?:y|ies)|terms?)|auto-?complet\\w*|\
                     (?:continue|complete|finish) (?:the|this|what the) (?:\\w+ )?(?:text|sentence|input|message|user)|\
                     emojis?|image (?:generation )?(?:prompt|task|description)|(?:prompt|description)\\b[^.\\n]*\\bimage|\
                     (?:folge|anschluss|rück|nach)fragen|nächste\\w* (?:fragen?|nachricht\\w*|eingaben?)|\
                     (?:fragen|nachrichten)\\b[^.\\n]*\\b(?:als nächstes|nutzer|benutzer|anwender)\\w*|\
                     such(?:anfrage|begriff|wort|wört)\\w*|vervollständig\\w*|(?:setze|führe)\\b[^.\\n]*\\bfort\\b|bildbeschreibung|bildprompt|prompt für ein bild";
const CONVERSATION: &str = "conversations?|chats?|dialog(?:ue)?s?|discussion|thread|transcript|messages (?:above|so far)|\
                            (?:first|opening) (?:user )?(?:message|question|prompt)|user'?s (?:first |opening |initial )?(?:message|query|question|request|prompt)|\
                            gesprächs?|unterhaltung|chatverlaufs?|verlaufs?|ersten? (?:nachricht|frage)|(?:be)?nutzers?";
const CHANGED: &str = "tasks?|to-?dos?|reminders?";

struct Patterns {
    change: Regex,
    about: Regex,
    of_conversation: Regex,
    emoji: Regex,
    feeling: Regex,
    keys: Regex,
    json: Regex,
    strict: Regex,
    length: Regex,
    unmistakable: Regex,
    in_quotes: Regex,
}

#[expect(
    clippy::expect_used,
    reason = "patterns of our own; every test of this module compiles them"
)]
static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    let regex = |pattern: &str| Regex::new(pattern).expect("a pattern of our own");
    Patterns {
        change: regex(&format!(
            r"(?i)\b(?:add|create|make|put|delete|remove|complete|finish|tick|mark|save|store|remember|file|schedule|turn|note|record|move|log)\b[^.!?\n]{{0,80}}\b(?:as (?:an? )?(?:\w+ )?(?:{CHANGED}|notes?)|(?:an?|my|our|new|these|those|into|each) (?:\w+ )?(?:{CHANGED})|(?:to|on|from|in|into|off|for) (?:my|our|the) (?:[\w-]+ )?(?:lists?|tasks?|to-?dos?|notes?|calendar|memory))\b|\bremind me\b|\b(?:füg\w*|trag\w*|erstell\w*|leg\w*|lösch\w*|entfern\w*|erledig\w*|hak\w*|merk\w*|notier\w*|speicher\w*|setz\w*|schreib\w*|nimm|pack\w*|mach\w*)\b[^.!?\n]{{0,80}}\b(?:als (?:neue\w* )?(?:aufgaben?|to-?dos?|erinnerung\w*|notiz\w*|termine?)|(?:meine\w*|zur?|zu meiner|auf die|auf meine|in die|in meine|von der|von meiner) (?:\w+ )?(?:aufgaben?\w*|to-?dos?|\w*liste|erinnerung\w*|notiz\w*|kalender)|(?:eine|neue|daraus|die) (?:neue )?(?:aufgaben?|to-?dos?|erinnerung))\b|\berinner\w* mich\b"
        )),
        about: regex(&format!(
            r"(?i)\b(?:{TITLE}|{OTHER})\b|\b(?:name|benenne)\b[^.\n]*\b(?:{CONVERSATION})\b"
        )),
        of_conversation: regex(&format!(
            r"(?i)\b(?:{TITLE})\b[^.\n]*\b(?:{CONVERSATION})\b|\b(?:{CONVERSATION})\b[^.\n]*\b(?:{TITLE})\b|\b(?:{OTHER})\b[^.\n]*\b(?:this |our |the )(?:{CONVERSATION})\b"
        )),
        emoji: regex(r"(?i)\bemojis?\b"),
        feeling: regex(
            r"(?i)\b(?:expressions?|emotions?|mood|feelings?|sentiment|tone|stimmung|gefühle?|gesichtsausdruck|miene|tonfall)\b",
        ),
        keys: regex(
            r#"(?i)["'“”„`](?:titles?|titel|name|tags?|labels?|keywords?|schlagw[oö]rter|topics?|themen|thema|categor(?:y|ies)|follow[_ -]?ups?|suggestions?|vorschl[aä]ge|questions?|fragen|folgefragen|queries|query|search_queries|suchanfragen|text|completion|continuation|fortsetzung|prompt|emoji|summary|zusammenfassung)["'“”`](?:\s*:|\s+(?:key|member|property|field|for|and|holding|containing)\b)"#,
        ),
        json: regex(r#"(?i)\bjson\b|\{\s*["'“]\w+["'”]\s*:"#),
        strict: regex(
            r"(?i)\b(?:respond|reply|return|output|answer|write|give|provide|print|produce|send|say)\b[^.\n]*\b(?:only|solely|exclusively|just|nothing (?:else|but|more))\b|\b(?:only|solely|just|exclusively|strictly|nothing but)\b[^.\n]*\b(?:titles?|headline|json|object|array|tags?|keywords?|labels?|emoji|name|quer(?:y|ies)|questions?|topics?|continuation|completion|text)\b|\bnothing (?:else|more)\b|\b(?:no|without(?: any)?|do not|don't|never|avoid)\b[^.\n]*\b(?:quot\w*|punctuation|explanations?|preamble|lead-in|commentary|prefix|markdown|formatting|extra|additional|other text|introduct\w*)\b|\b(?:nur|ausschließlich|lediglich|sonst nichts|nichts (?:anderes|weiter\w*|sonst|als))\b|\b(?:ohne|keine\w*)\b[^.\n]*\b(?:anführungszeichen|satzzeichen|erklärung\w*|einleitung\w*|kommentar\w*|zusätz\w*|weiteren text|formatierung|markdown|punkt)\b",
        ),
        length: regex(&format!(
            r"(?i)\b{NUMBER}\b[\s-]*(?:(?:to|or|-|–|bis|oder)[\s-]*{NUMBER}[\s-]*)?(?:words?|characters?|chars|letters|wörter\w*|worte?n?|zeichen|sätze\w*|sentences?)\b|\b(?:single|one|ein(?:em)?) (?:word|line|wort|zeile)\b"
        )),
        unmistakable: regex(
            r"(?i)\b(?:prompt|context|kontext)\b (?:for|für) (?:any )?(?:future|later|spätere\w*|künftige\w*) (?:context|conversations?|messages?|gespräche?|nachrichten)|\b(?:responses|answers) (?:from|of) (?:various|several|multiple|different) (?:language )?(?:models|llms|assistants)\b(?s:.*)\b(?:synthesi[sz]e|combine|merge|aggregate)\w*\b",
        ),
        in_quotes: regex(
            r#"(?s)"[^"\n]{0,500}"|“[^”\n]{0,500}”|„[^“”\n]{0,500}[“”]|`[^`\n]{0,500}`"#,
        ),
    }
});

impl OrderSigns {
    pub(super) fn detect(order: &str) -> Self {
        Self {
            change: is_change(order),
            about: PATTERNS.about.is_match(order),
            of_conversation: PATTERNS.of_conversation.is_match(order),
            mood: PATTERNS.emoji.is_match(order) && PATTERNS.feeling.is_match(order),
            keys: PATTERNS.keys.is_match(order),
            json: PATTERNS.json.is_match(order),
            strict: PATTERNS.strict.is_match(order),
            length: PATTERNS.length.is_match(order),
        }
    }
}

/// Returns true if the text has a sign of an order.
pub(super) fn has_signs(order: &str) -> bool {
    let signs = OrderSigns::detect(order);
    signs.change || signs.about || signs.mood || signs.keys
}

/// Returns true for orders that only programs give, whatever else the text says.
pub(super) fn is_unmistakable(text: &str) -> bool {
    PATTERNS.unmistakable.is_match(text)
}

/// Returns true for Open WebUI's question which of its tools fit; their definitions come first.
pub(super) fn chooses_tools(text: &str) -> bool {
    text.trim_start().starts_with("Available Tools:")
        && text.contains("choose and return the correct tool(s)")
}

/// Returns true if data is to be changed. Quotation words and negated ones do not count.
fn is_change(order: &str) -> bool {
    let order = PATTERNS.in_quotes.replace_all(order, " ");
    // "do not add tasks" is no order to change anything.
    PATTERNS.change.find_iter(&order).any(|found| {
        let before = order.get(..found.start()).unwrap_or_default().trim_end();
        !["not", "n't", "never", "without"]
            .iter()
            .any(|no| before.ends_with(no))
    })
}
