//! Irregular forms of English words, which a stemmer cannot reduce: "went" is a form of "go".

use std::collections::HashMap;
use std::sync::LazyLock;

/// Groups of forms: the base form, then the others.
const FORMS: &str = "\
    bad worse worst, become became, begin began begun, bend bent, bite bit bitten, bleed bled, blow blew blown, \
    break broke broken, breed bred, bring brought, build built, burn burnt, buy bought, catch caught, child \
    children, choose chose chosen, cling clung, come came, creep crept, deal dealt, dig dug, dive dove, do did \
    does done, draw drawn drew, dream dreamt, drink drank, drive driven drove, eat ate eaten, fall fallen fell, feed \
    fed, feel felt, fight fought, find found, flee fled, fly flew flown, foot feet, forget forgot forgotten, \
    freeze froze frozen, get got gotten, give gave given, go goes gone went, good best better, goose geese, grow grew \
    grown, half halves, hang hung, hear heard, hide hid hidden, hold held, keep kept, kneel knelt, knife knives, \
    know knew known, lay laid, lead led, leap leapt, learn learnt, leave left, lend lent, lie lain, life \
    lives, light lit, loaf loaves, lose lost, louse lice, make made, man men, mean meant, meet met, mouse mice, ox \
    oxen, pay paid, person people, prove proven, ride ridden rode, ring rang rung, rise risen rose, run ran, say \
    said, see saw seen, seek sought, sell sold, send sent, sew sewn, shake shaken shook, shelf shelves, shine \
    shone, shoot shot, show shown, shrink shrank shrunk, sing sang sung, sink sank sunk, sit sat, sleep slept, \
    slide slid, sow sown, speak spoke spoken, spend spent, spin spun, spring sprang sprung, stand stood, steal \
    stole stolen, stick stuck, sting stung, strike struck, swear swore sworn, sweep swept, swell swollen, swim \
    swam swum, swing swung, take taken took, teach taught, tear tore torn, tell told, thief thieves, think \
    thought, throw threw thrown, tooth teeth, tread trod, understand understood, wake woke woken, wear wore worn, \
    weave wove woven, weep wept, wife wives, win won, withdraw withdrawn withdrew, wolf wolves, woman women, wrap \
    wrapt, write written wrote";

static BASES: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let group = |forms: &'static str| {
        let mut words = forms.split_whitespace();
        let base = words.next().unwrap_or_default();
        words.map(move |form| (form, base))
    };
    FORMS.split(',').flat_map(group).collect()
});

static FORMS_OF: LazyLock<HashMap<&'static str, Vec<&'static str>>> = LazyLock::new(|| {
    let group = |forms: &'static str| {
        let forms: Vec<&str> = forms.split_whitespace().collect();
        forms.first().map(|base| (*base, forms.clone()))
    };
    FORMS.split(',').filter_map(group).collect()
});

/// Returns all forms of a word in lower case, of which it may be any; none if the table does not
/// have it.
pub(super) fn forms(word: &str) -> &'static [&'static str] {
    FORMS_OF.get(base(word)).map_or(&[], Vec::as_slice)
}

/// Returns the base form of a word in lower case, or the word itself.
pub(super) fn base(word: &str) -> &str {
    BASES.get(word).copied().unwrap_or(word)
}
