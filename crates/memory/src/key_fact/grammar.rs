//! A small grammar for corrections: the subject and predicate of a sentence, and cues that announce
//! a correction.
//!
//! Five languages. In any other, a fact is corrected only if the caller names it.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use crate::language::{Language, each_token};

/// The words of one language by their function. Whole words, normalised; phrases have spaces.
struct Table {
    code: &'static str,
    /// Cues that an earlier statement is wrong.
    corrects: &'static str,
    /// Cues that a state has changed.
    changes: &'static str,
    /// Cues that a statement holds beside earlier ones.
    adds: &'static str,
    /// Pairs of words around the wrong and the right part: "not Monday but Tuesday".
    contrasts: &'static [(&'static str, &'static str)],
    /// Verbs, which end the subject of a sentence. Those of `attributes` stand here too.
    verbs: &'static str,
    /// Words of attributes of which a person has only one value, such as a home or a name: one
    /// attribute a line.
    attributes: &'static [&'static str],
    /// Words for the user themselves.
    speaker: &'static str,
    /// True if a sentence without subject is about the user, because the verb alone tells it.
    drops_pronouns: bool,
}

const TABLES: &[Table] = &[
    Table {
        code: "en",
        corrects: "no,nope,actually,correction,i meant,meant to say,that's wrong,that is wrong,was wrong,is wrong,instead,rather than,\
            in fact,sorry,mistaken,no longer,not anymore,any more,anymore,used to,not true,mixed up,wrong",
        changes: "moved,moving,changed,switched,now,nowadays,since then,from now on,renamed,rescheduled,postponed,updated,new,\
            these days,by now,currently,started,became,turned,has become,quit,left",
        adds: "also,too,as well,another,both,in addition,additionally,besides,one more,still",
        contrasts: &[
            ("not", "but"),
            ("isn't", "but"),
            ("from", "to"),
            ("isn't", "it's"),
            ("not", "it's"),
        ],
        verbs: "is,are,was,were,am,be,been,has,have,had,does,do,did,will,would,can,could,should,isn't,aren't,wasn't,doesn't,don't,\
            plays,calls,leaves,departs,arrives,likes,like,loves,love,hates,prefers,prefer,wants,needs,uses,use,drinks,eats,plays,reads,watches,studies,speaks,teaches,\
            drives,rides,owns,keeps,takes,goes,comes,gets,got,lost,bought,sold,made,started,starts,begins,ends,opens,closes,costs,\
            meets,meet,met,visits,visited,knows,plans,runs,wears,sleeps,wakes,pays,called,changed,switched,quit,left,became,weighs,\
            celebrates,live,lives,lived,moved,moves,resides,relocated,work,works,worked,joined,attends,became,turned,renamed,belongs,listens,collects,supports,manages,leads,practises,practices,trains",
        attributes: &[
            "live,lives,living,lived,move,moves,moved,moving,reside,resides,relocated,relocate,settled,home,based",
            "work,works,working,worked,job,employed,employer,joined,company,hired",
            "name,named,called",
            "phone,number,mobile",
            "address",
            "email,e-mail,mail",
            "birthday,born",
            "favourite,favorite",
            "married,wife,husband,spouse,partner,divorced,engaged",
            "age,old,turned",
            "password,pin,code",
        ],
        speaker: "i,me,my,mine,user,user's,the user",
        drops_pronouns: false,
    },
    Table {
        code: "de",
        corrects: "nein,nee,eigentlich,korrektur,ich meinte,meinte,stattdessen,statt,anstatt,nicht mehr,kein mehr,falsch,stimmt nicht,\
            entschuldigung,verwechselt,vertan,doch nicht,sondern,in wahrheit,tatsächlich",
        changes: "umgezogen,gezogen,zieht um,gewechselt,wechselt,geändert,verschoben,verlegt,jetzt,inzwischen,mittlerweile,neuerdings,\
            ab jetzt,ab sofort,nun,seitdem,heißt jetzt,neu,neue,neuer,neues,geworden,umbenannt,gekündigt",
        adds: "auch,ebenfalls,außerdem,zusätzlich,noch ein,noch eine,noch einen,beide,weiterhin",
        contrasts: &[
            ("nicht", "sondern"),
            ("kein", "sondern"),
            ("keine", "sondern"),
            ("keinen", "sondern"),
            ("von", "auf"),
        ],
        verbs: "wohne,wohnt,wohnte,lebe,lebt,lebte,ziehe,zieht,zog,arbeite,arbeitet,arbeitete,heiße,heißt,ist,sind,war,waren,bin,bist,hat,habe,haben,hatte,wird,werden,wurde,kann,soll,muss,mag,liebt,hasst,trinkt,isst,spielt,\
            liest,lernt,spricht,fährt,fuhr,besitzt,nimmt,geht,kommt,bekommt,kauft,beginnt,endet,öffnet,schließt,kostet,trifft,besucht,kennt,\
            läuft,trägt,schläft,zahlt,findet,wiegt,feiert,leitet,gehört,sammelt,bevorzugt,wechselt,heiratet,studiert,unterrichtet,fängt",
        attributes: &[
            "wohne,wohnt,wohnen,wohnte,lebe,lebt,leben,lebte,ziehe,zieht,ziehen,zog,gezogen,umgezogen,umziehen,zuhause",
            "arbeite,arbeitet,arbeiten,arbeitete,job,stelle,firma,arbeitgeber,angestellt",
            "name,heiße,heißt,heißen,umbenannt",
            "telefonnummer,nummer,handynummer,telefon",
            "adresse,anschrift",
            "mail,email,e-mail,mailadresse",
            "geburtstag,geboren",
            "lieblingsfarbe,lieblingsessen,lieblingsfilm,lieblingsbuch,lieblingsband,lieblingstier,lieblingssport",
            "verheiratet,frau,mann,ehefrau,ehemann,partner,partnerin,geschieden,verlobt",
            "alter,jahre,alt",
            "passwort,pin,code",
        ],
        speaker: "ich,mich,mir,mein,meine,meinen,meinem,meiner,meines,nutzer,benutzer",
        drops_pronouns: false,
    },
    Table {
        code: "fr",
        corrects: "non,en fait,plutôt,correction,je voulais dire,voulais dire,au lieu de,au lieu,n'est plus,ne plus,plus maintenant,\
            c'est faux,faux,pardon,désolé,désolée,trompé,trompée,erreur,en réalité,finalement",
        changes: "déménagé,déménage,changé,change,maintenant,désormais,dorénavant,à présent,depuis,reporté,déplacé,renommé,nouveau,nouvelle,\
            devenu,devenue,est passé,est passée,quitté",
        adds: "aussi,également,en plus,de plus,un autre,une autre,les deux,toujours",
        contrasts: &[("pas", "mais"), ("de", "à"), ("du", "au"), ("pas", "c'est")],
        verbs: "habite,habitait,vit,vis,vivait,réside,travaille,travaillait,appelle,est,sont,était,étaient,suis,a,ai,ont,avait,va,peut,doit,aime,adore,déteste,préfère,boit,mange,joue,lit,apprend,parle,conduit,\
            part,arrive,possède,prend,vient,reçoit,achète,commence,finit,ouvre,ferme,coûte,rencontre,visite,connaît,court,porte,dort,paie,pèse,\
            fête,dirige,collectionne,étudie,enseigne,veut,utilise,fait,tombe",
        attributes: &[
            "habite,habitent,habitait,vit,vis,vivait,vivre,déménagé,déménage,déménager,installé,installée,réside,emménagé",
            "travaille,travaillait,emploi,boulot,job,poste,entreprise,employeur,embauché,embauchée",
            "nom,prénom,appelle",
            "téléphone,numéro,portable",
            "adresse",
            "mail,email,e-mail,courriel",
            "anniversaire,né,née",
            "préféré,préférée",
            "marié,mariée,femme,mari,conjoint,divorcé,divorcée,fiancé,fiancée",
            "âge,ans",
            "code",
        ],
        speaker: "je,j',moi,m',mon,ma,mes,utilisateur",
        drops_pronouns: false,
    },
    Table {
        code: "es",
        corrects: "no,en realidad,corrección,quise decir,quería decir,mejor dicho,en vez de,en lugar de,ya no,no es cierto,falso,perdón,\
            lo siento,equivoqué,me equivoqué,de hecho",
        changes: "mudado,mudó,mudé,muda,cambiado,cambió,cambié,cambia,ahora,actualmente,desde entonces,a partir de ahora,aplazado,aplazada,\
            movido,renombrado,nuevo,nueva,dejó,dejé,pasó a,pasa a,hoy en día",
        adds: "también,además,otro,otra,ambos,ambas,todavía,sigue,asimismo",
        contrasts: &[("no", "sino"), ("de", "a"), ("del", "al")],
        verbs: "vive,vivo,vivía,reside,trabaja,trabajo,trabajaba,llama,llamo,es,son,era,eran,soy,está,están,estoy,ha,he,han,tiene,tengo,tienen,va,puede,debe,quiere,gusta,gustan,ama,odia,prefiere,\
            bebe,toma,come,juega,lee,aprende,habla,conduce,sale,llega,posee,viene,recibe,compra,empieza,termina,abre,cierra,cuesta,conoce,visita,\
            corre,lleva,duerme,paga,pesa,celebra,dirige,colecciona,estudia,enseña,usa,se,me,cae,cambió,cambié",
        attributes: &[
            "vive,vivo,viven,vivía,vivir,reside,mudado,mudó,mudé,muda,mudarse,casa",
            "trabaja,trabajo,trabajaba,trabajar,empleo,empresa,puesto,contratado,contratada",
            "nombre,llama,llamo,llamaba",
            "teléfono,número,móvil",
            "dirección",
            "correo,email,mail",
            "cumpleaños,nació,nací,nacido,nacida",
            "favorito,favorita,preferido,preferida",
            "casado,casada,esposa,esposo,marido,mujer,pareja,divorciado,divorciada",
            "edad,años",
            "contraseña,pin,código",
        ],
        speaker: "yo,mi,mis,me,mí,usuario",
        drops_pronouns: true,
    },
    Table {
        code: "it",
        corrects: "no,in realtà,anzi,correzione,volevo dire,intendevo,invece di,invece,al posto di,non più,non è vero,falso,scusa,scusami,\
            mi sono sbagliato,mi sono sbagliata,sbagliato,sbagliata",
        changes: "trasferito,trasferita,trasferisce,cambiato,cambiata,cambia,adesso,ora,ormai,attualmente,da allora,d'ora in poi,spostato,spostata,\
            rinviato,rinviata,rinominato,nuovo,nuova,diventato,diventata,passato a,passata a,lasciato",
        adds: "anche,inoltre,un altro,un'altra,entrambi,entrambe,ancora,pure",
        contrasts: &[("non", "ma"), ("non", "bensì"), ("da", "a"), ("dal", "al")],
        verbs: "vive,vivo,viveva,abita,abito,abitava,risiede,lavora,lavoro,lavorava,chiama,chiamo,è,sono,era,erano,ha,ho,hanno,aveva,va,può,deve,vuole,piace,piacciono,ama,odia,preferisce,beve,mangia,gioca,suona,legge,impara,\
            parla,guida,parte,arriva,possiede,prende,viene,riceve,compra,inizia,comincia,finisce,apre,chiude,costa,incontra,visita,conosce,corre,\
            porta,dorme,paga,pesa,festeggia,dirige,colleziona,studia,insegna,usa,si,mi,cade",
        attributes: &[
            "vive,vivo,viveva,vivere,abita,abito,abitava,abitare,risiede,trasferito,trasferita,trasferirsi,casa",
            "lavora,lavoro,lavorava,lavorare,impiego,azienda,ditta,assunto,assunta,posto",
            "nome,chiama,chiamo,chiamava",
            "telefono,numero,cellulare",
            "indirizzo",
            "mail,email,e-mail,posta",
            "compleanno,nato,nata",
            "preferito,preferita",
            "sposato,sposata,moglie,marito,compagno,compagna,divorziato,divorziata",
            "età,anni",
            "password,pin,codice",
        ],
        speaker: "io,mio,mia,miei,mie,me,mi,m',utente",
        drops_pronouns: true,
    },
];

/// The functions of one word.
#[derive(Debug, Clone, Copy, Default)]
struct WordUses {
    is_verb: bool,
    is_speaker: bool,
    /// The attribute of which a person has only one value, by its index in the table.
    attribute: Option<usize>,
}

struct Grammar {
    table: &'static Table,
    language: Option<&'static Language>,
    uses: HashMap<&'static str, WordUses>,
    /// Cues of several words between spaces, which are no part of the statement.
    phrases: Vec<String>,
    /// Cues of one word, which are none either.
    fillers: HashSet<&'static str>,
}

/// Articles, pronouns and prepositions that are joined to the next word by an apostrophe.
const ELISIONS: &[&str] = &[
    "j", "l", "d", "n", "m", "s", "c", "t", "qu", "un", "all", "dell", "nell", "dall", "sull",
    "quest", "dov", "com",
];

fn words(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
}

static GRAMMARS: LazyLock<Vec<Grammar>> = LazyLock::new(|| {
    let build = |table: &'static Table| {
        let mut uses: HashMap<&'static str, WordUses> = HashMap::new();
        words(table.verbs).for_each(|word| uses.entry(word).or_default().is_verb = true);
        words(table.speaker).for_each(|word| uses.entry(word).or_default().is_speaker = true);
        for (attribute, list) in table.attributes.iter().enumerate() {
            words(list).for_each(|word| uses.entry(word).or_default().attribute = Some(attribute));
        }
        let phrases = [table.corrects, table.changes, table.adds]
            .into_iter()
            .flat_map(words)
            .filter(|phrase| phrase.contains(' '))
            .map(|phrase| format!(" {phrase} "))
            .collect();
        Grammar {
            table,
            language: Language::from_code(table.code),
            uses,
            phrases,
            fillers: words(table.corrects).chain(words(table.changes)).collect(),
        }
    };
    TABLES.iter().map(build).collect()
});

/// The way in which a text announces its statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cue {
    /// No cue, or one that the statement holds beside earlier ones.
    None,
    /// A change of state: "now", "moved".
    Change,
    /// A correction: "no", "actually", "not Monday but Tuesday".
    Correction,
}

/// The words of a text. An address is one word; an elision is a word of its own.
pub(crate) struct Words(Vec<String>);

impl Words {
    /// Divides a text into words.
    pub(crate) fn new(text: &str) -> Self {
        let mut found = Vec::new();
        for word in text.split_whitespace() {
            // The parts of an address say nothing about its subject.
            if word.contains('@') || word.contains("://") {
                found.push(word.trim_end_matches(['.', ',', ';', '!']).to_lowercase());
                continue;
            }
            // Elided words of French and Italian are words of their own: `j'habite`, `dell'anno`.
            each_token(word, |token| match token.word.split_once('\'') {
                Some((joined, rest)) if ELISIONS.contains(&joined) => {
                    found.push(format!("{joined}'"));
                    found.push(rest.to_owned());
                }
                Some(_) | None => found.push(token.word.to_owned()),
            });
        }
        Self(found)
    }

    /// Detects the cue of the text in its language; in any of the five if the language is not
    /// detected.
    pub(crate) fn cue(&self) -> Cue {
        let text = format!(" {} ", self.0.join(" "));
        match detect_grammar(self.iter()) {
            Some(grammar) => grammar.cue(&text),
            None => GRAMMARS
                .iter()
                .map(|grammar| grammar.cue(&text))
                .max()
                .unwrap_or(Cue::None),
        }
    }

    fn iter(&self) -> impl Iterator<Item = &str> + Clone {
        self.0.iter().map(String::as_str)
    }
}

/// A sentence, divided into subject and predicate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sentence {
    /// The stems of the subject; empty for the user themselves.
    pub(crate) subject: Vec<String>,
    /// The stems of the predicate, without those of attributes.
    pub(crate) predicate: Vec<String>,
    /// The attributes of which a person has only one value, such as a home.
    pub(crate) attributes: Vec<usize>,
    /// True if it has a verb, which divides subject and predicate.
    pub(crate) has_verb: bool,
}

/// Parses two sentences in the language that is detected from both together. `None` if it is none
/// of the five.
pub(crate) fn parse_pair(one: &Words, other: &Words) -> Option<(Sentence, Sentence)> {
    let grammar = detect_grammar(one.iter().chain(other.iter()))?;
    let language = grammar.language?;
    Some((grammar.parse(one, language), grammar.parse(other, language)))
}

impl Grammar {
    /// Detects a cue. `text`: words between single spaces.
    fn cue(&self, text: &str) -> Cue {
        let has =
            |list: &'static str| words(list).any(|phrase| text.contains(&format!(" {phrase} ")));
        let contrasts = self.table.contrasts.iter().any(|(first, second)| {
            let rest = text.split_once(&format!(" {first} ")).map(|(_, rest)| rest);
            rest.is_some_and(|rest| format!(" {rest}").contains(&format!(" {second} ")))
        });
        // "She also moved to …" adds, whatever other cue is in it.
        if has(self.table.adds) {
            Cue::None
        } else if contrasts || has(self.table.corrects) {
            Cue::Correction
        } else if has(self.table.changes) {
            Cue::Change
        } else {
            Cue::None
        }
    }

    fn parse(&self, words: &Words, language: &Language) -> Sentence {
        let mut sentence = Sentence::default();
        let mut text = format!(" {} ", words.0.join(" "));
        // Before the text is divided into words, or “used to” would leave words of content behind.
        for phrase in &self.phrases {
            if text.contains(phrase) {
                text = text.replace(phrase, " ");
            }
        }
        let mut has_speaker = self.table.drops_pronouns;
        for word in text.split_whitespace() {
            let uses = self.uses.get(word).copied().unwrap_or_default();
            let has_verb = sentence.has_verb;
            // In "Anna lives …" the verb is the predicate's first word, in "Anna's birthday is …"
            // it stands behind the attribute.
            sentence.has_verb |= uses.is_verb;
            has_speaker |= uses.is_speaker;
            if let Some(attribute) = uses.attribute {
                if !sentence.attributes.contains(&attribute) {
                    sentence.attributes.push(attribute);
                }
            } else if !uses.is_verb
                && !uses.is_speaker
                && !self.fillers.contains(word)
                && !is_function_word(word, language)
            {
                let stem = language.stem(word);
                if has_verb {
                    sentence.predicate.push(stem)
                } else {
                    sentence.subject.push(stem)
                }
            }
        }
        // "Eigentlich arbeitet Anna …": the subject stands behind the verb.
        if sentence.subject.is_empty() && !has_speaker && !sentence.predicate.is_empty() {
            sentence.subject.push(sentence.predicate.remove(0));
        }
        sentence
    }
}

/// Returns true for a word that has no meaning of its own: a stop word or an elision.
fn is_function_word(word: &str, language: &Language) -> bool {
    word.ends_with('\'') || language.is_stop(word)
}

/// Detects the grammar of the language that knows most of these words. `None` if none of the five
/// knows a word, or another language knows more.
fn detect_grammar<'a>(words: impl Iterator<Item = &'a str> + Clone) -> Option<&'static Grammar> {
    let known = |grammar: &Grammar| {
        let is_known = |word: &&str| {
            grammar.uses.contains_key(*word)
                || grammar
                    .language
                    .is_some_and(|language| language.is_stop(word))
        };
        words.clone().filter(is_known).count()
    };
    // Reversed, because `max_by_key` returns the last of equals: English, the first, wins ties.
    let (known, best) = GRAMMARS
        .iter()
        .rev()
        .map(|grammar| (known(grammar), grammar))
        .max_by_key(|(known, _)| *known)?;
    let general = Language::detect(words.clone());
    // A language without a grammar that has more stop words among them is not one of the five.
    let is_other = general.is_some_and(|language| {
        words.clone().filter(|word| language.is_stop(word)).count() > known
    });
    (known > 0 && !is_other).then_some(best)
}
