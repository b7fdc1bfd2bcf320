//! Irregular forms of English words, which a stemmer cannot reduce: "went" is a form of "go".

use std::collections::HashMap;
use std::sync::LazyLock;

/// The mark of a form that is a form of a regular word too.
const AMBIGUOUS: char = '*';

/// Groups of forms: the base form, then the others. A form with a star is a form of another, regular
/// word too: "lives" is one of "life" and of "live".
const FORMS: &str = "\
    bad worse worst, become became, begin began begun, bend bent, bite bit bitten, bleed bled, blow blew blown, \
    break broke broken, breed bred, bring brought, build built, burn burnt, buy bought, calf calves*, catch caught, child \
    children, choose chose chosen, cling clung, come came, creep crept, deal dealt, dig dug, dive dove*, do did \
    does done, draw drawn drew, dream dreamt, drink drank, drive driven drove, eat ate eaten, fall fallen fell, feed \
    fed, feel felt, fight fought, find found, flee fled, fly flew flown, foot feet, forget forgot forgotten, \
    freeze froze frozen, get got gotten, give gave given, go goes gone went, good best better, goose geese, grow grew \
    grown, half halves*, hang hung, hear heard, hide hid hidden, hold held, keep kept, kneel knelt, knife knives, \
    know knew known, lay laid, lead led, leap leapt, learn learnt, leave left, lend lent, leaf leaves*, lie lain, life \
    lives*, light lit, loaf loaves, lose lost, louse lice, make made, man men, mean meant, meet met, mouse mice, ox \
    oxen, pay paid, person people, prove proven, ride ridden rode, ring rang rung, rise risen rose*, run ran, say \
    said, see saw seen, seek sought, sell sold, send sent, sew sewn, shake shaken shook, shelf shelves*, shine \
    shone, shoot shot, show shown, shrink shrank shrunk, sing sang sung, sink sank sunk, sit sat, sleep slept, \
    slide slid, sow sown, speak spoke spoken, spend spent, spin spun, spring sprang sprung, stand stood, steal \
    stole stolen, stick stuck, sting stung, strike struck, swear swore sworn, sweep swept, swell swollen, swim \
    swam swum, swing swung, take taken took, teach taught, tear tore torn, tell told, thief thieves, think \
    thought, throw threw thrown, tooth teeth, tread trod, understand understood, wake woke woken, wear wore worn, \
    weave wove woven, weep wept, wife wives, win won, withdraw withdrawn withdrew, wolf wolves, woman women, wrap \
    wrapt, write written wrote";

static GROUPS: LazyLock<Vec<Vec<&'static str>>> = LazyLock::new(|| {
    let group = |forms: &'static str| forms.split_whitespace().collect();
    FORMS.split(',').map(group).collect()
});

/// The base of each form that is a form of no other word.
static BASES: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let forms = GROUPS.iter().filter_map(|group| group.split_first());
    forms
        .flat_map(|(base, forms)| forms.iter().map(|form| (*form, *base)))
        .filter(|(form, _)| !form.ends_with(AMBIGUOUS))
        .collect()
});

/// All forms of each form in the table.
static FORMS_OF: LazyLock<HashMap<&'static str, Vec<&'static str>>> = LazyLock::new(|| {
    let mut all: HashMap<&'static str, Vec<&'static str>> = HashMap::new();
    for group in GROUPS.iter() {
        let forms: Vec<&'static str> = group.iter().map(|form| unmarked(form)).collect();
        for form in &forms {
            all.entry(form).or_default().extend(&forms);
        }
    }
    all
});

fn unmarked(form: &'static str) -> &'static str {
    form.strip_suffix(AMBIGUOUS).unwrap_or(form)
}

/// Returns all forms of a word in lower case, of which it may be any; none if the table does not
/// have it.
pub(super) fn forms(word: &str) -> &'static [&'static str] {
    FORMS_OF.get(word).map_or(&[], Vec::as_slice)
}

/// Returns the base form of a word in lower case, or the word itself. A form of two words is left as
/// it is, so that it has the stem of the regular one.
pub(super) fn base(word: &str) -> &str {
    BASES.get(word).copied().unwrap_or(word)
}
