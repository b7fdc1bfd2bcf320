//! The little grammar that corrections are told by: who a fact is about, what it says of them, and
//! words that announce a correction.
//!
//! Five languages. In another one, a fact is corrected only if whoever remembers it says which.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::words::{Language, each_token};

/// Words of one language, by what they do. Whole words, normalised; phrases have blanks.
struct Table {
    code: &'static str,
    /// That what was said before is wrong.
    corrects: &'static str,
    /// That something is another way than before.
    changes: &'static str,
    /// That something is so beside what is known.
    adds: &'static str,
    /// Pairs around what is wrong and what is right: "not Monday but Tuesday".
    contrasts: &'static [(&'static str, &'static str)],
    /// Verbs that end the part of a sentence that says who it is about. Those of `single` stand
    /// here too.
    verbs: &'static str,
    /// Words for one who has only one of something: each line is of one matter.
    single: &'static [&'static str],
    /// The person themselves.
    speaker: &'static str,
    /// The verb alone says that it is about the person themselves.
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
        single: &[
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
        single: &[
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
        single: &[
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
        single: &[
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
        single: &[
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

/// The part of one word in a sentence.
#[derive(Debug, Clone, Copy, Default)]
struct Uses {
    is_verb: bool,
    is_speaker: bool,
    /// The matter of which one has only one, by its place in the table.
    single: Option<usize>,
}

struct Grammar {
    table: &'static Table,
    language: Option<&'static Language>,
    uses: HashMap<&'static str, Uses>,
    /// Phrases of several words that announce something and say nothing else.
    phrases: Vec<&'static str>,
}

/// Articles, pronouns and prepositions that are written as one word with the next.
const JOINED: &[&str] = &[
    "j", "l", "d", "n", "m", "s", "c", "t", "qu", "un", "all", "dell", "nell", "dall", "sull",
    "quest", "dov", "com",
];

static GRAMMARS: LazyLock<Vec<Grammar>> = LazyLock::new(|| {
    let words = |list: &'static str| {
        list.split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
    };
    let of_one = |table: &'static Table| {
        let mut uses: HashMap<&'static str, Uses> = HashMap::new();
        words(table.verbs).for_each(|word| uses.entry(word).or_default().is_verb = true);
        words(table.speaker).for_each(|word| uses.entry(word).or_default().is_speaker = true);
        for (matter, list) in table.single.iter().enumerate() {
            words(list).for_each(|word| uses.entry(word).or_default().single = Some(matter));
        }
        let phrases = [table.corrects, table.changes, table.adds]
            .into_iter()
            .flat_map(words);
        let phrases = phrases.filter(|phrase| phrase.contains(' ')).collect();
        Grammar {
            table,
            language: Language::named(table.code),
            uses,
            phrases,
        }
    };
    TABLES.iter().map(of_one).collect()
});

/// The way in which the words of a person announce what they say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Announced {
    /// Not at all, or as something beside what is known.
    Nothing,
    /// As another state of something: "now", "moved".
    Change,
    /// As the correction of something: "no", "actually", "not Monday but Tuesday".
    Correction,
}

/// Reads how what a person says is announced, in the language of their words; in any of the five if
/// nothing tells which that is.
pub(crate) fn announced(said: &str) -> Announced {
    let tokens = tokens(said);
    let text = format!(" {} ", tokens.join(" "));
    match grammar_of(&tokens) {
        Some(grammar) => grammar.announced(&text),
        None => GRAMMARS
            .iter()
            .map(|grammar| grammar.announced(&text))
            .max()
            .unwrap_or(Announced::Nothing),
    }
}

/// A sentence: who it is about, and what it says of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sentence {
    /// The stems of who or what it is about; empty for the person themselves.
    pub(crate) about: Vec<String>,
    /// The stems of what is said, without those of `matters`.
    pub(crate) says: Vec<String>,
    /// Matters of which one has only one, such as where one lives.
    pub(crate) matters: Vec<usize>,
    /// It has a verb that tells the two apart.
    pub(crate) is_divided: bool,
}

/// Reads two sentences in the language that both seem to be in. `None`: it is none of the five.
pub(crate) fn sentences(one: &str, other: &str) -> Option<(Sentence, Sentence)> {
    let (one, other) = (tokens(one), tokens(other));
    let both: Vec<String> = one.iter().chain(&other).cloned().collect();
    let grammar = grammar_of(&both)?;
    let language = grammar.language?;
    Some((
        grammar.sentence(&one, language),
        grammar.sentence(&other, language),
    ))
}

impl Grammar {
    /// `text`: words between single blanks.
    fn announced(&self, text: &str) -> Announced {
        let has = |list: &str| {
            let mut phrases = list
                .split(',')
                .map(str::trim)
                .filter(|phrase| !phrase.is_empty());
            phrases.any(|phrase| text.contains(&format!(" {phrase} ")))
        };
        let contrasts = self.table.contrasts.iter().any(|(first, second)| {
            let rest = text.split_once(&format!(" {first} ")).map(|(_, rest)| rest);
            rest.is_some_and(|rest| format!(" {rest}").contains(&format!(" {second} ")))
        });
        if has(self.table.adds) {
            Announced::Nothing
        } else if contrasts || has(self.table.corrects) {
            Announced::Correction
        } else if has(self.table.changes) {
            Announced::Change
        } else {
            Announced::Nothing
        }
    }

    fn sentence(&self, tokens: &[String], language: &Language) -> Sentence {
        let mut sentence = Sentence::default();
        let fillers = |word: &str| {
            let lists = [self.table.corrects, self.table.changes];
            lists
                .iter()
                .any(|list| list.split(',').any(|filler| filler.trim() == word))
        };
        let mut text = format!(" {} ", tokens.join(" "));
        for phrase in &self.phrases {
            text = text.replace(&format!(" {phrase} "), " ");
        }
        let mut is_of_speaker = self.table.drops_pronouns;
        for word in text.split_whitespace() {
            let uses = self.uses.get(word).copied().unwrap_or_default();
            let is_divided = sentence.is_divided;
            // "Anna lives …" is divided by what she does, "Anna's birthday is …" by the verb behind
            // it.
            sentence.is_divided |= uses.is_verb;
            is_of_speaker |= uses.is_speaker;
            if let Some(matter) = uses.single {
                if !sentence.matters.contains(&matter) {
                    sentence.matters.push(matter);
                }
            } else if !uses.is_verb
                && !uses.is_speaker
                && !fillers(word)
                && !is_grammar(word, language)
            {
                let stem = language.stem(word);
                if is_divided {
                    sentence.says.push(stem)
                } else {
                    sentence.about.push(stem)
                }
            }
        }
        // "Eigentlich arbeitet Anna …": who it is about stands behind the verb.
        if sentence.about.is_empty() && !is_of_speaker && !sentence.says.is_empty() {
            sentence.about.push(sentence.says.remove(0));
        }
        sentence
    }
}

/// Returns whether a word says nothing of its own.
fn is_grammar(word: &str, language: &Language) -> bool {
    word.ends_with('\'') || language.is_stop(word)
}

/// Returns the words of a text: an address as one, articles and pronouns that are joined to the
/// next word as words of their own.
fn tokens(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for word in text.split_whitespace() {
        if word.contains('@') || word.contains("://") {
            found.push(word.trim_end_matches(['.', ',', ';', '!']).to_lowercase());
            continue;
        }
        each_token(word, |token| match token.word.split_once('\'') {
            Some((joined, rest)) if JOINED.contains(&joined) => {
                found.push(format!("{joined}'"));
                found.push(rest.to_owned());
            }
            Some(_) | None => found.push(token.word.to_owned()),
        });
    }
    found
}

/// Returns the grammar of the language that most of these words are of. `None`: of none a word is
/// known.
fn grammar_of(tokens: &[String]) -> Option<&'static Grammar> {
    let known = |grammar: &Grammar| {
        let is_known = |word: &&String| {
            grammar.uses.contains_key(word.as_str())
                || grammar
                    .language
                    .is_some_and(|language| language.is_stop(word))
        };
        tokens.iter().filter(is_known).count()
    };
    let best = GRAMMARS.iter().rev().max_by_key(|grammar| known(grammar))?;
    let general = Language::of(tokens.iter().map(String::as_str));
    // A language without a grammar that more of its words are of is not one of the five.
    let is_other = general.is_some_and(|language| {
        let of_it = tokens.iter().filter(|word| language.is_stop(word)).count();
        of_it > known(best)
    });
    (known(best) > 0 && !is_other).then_some(best)
}
