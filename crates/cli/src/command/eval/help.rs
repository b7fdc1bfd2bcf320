//! The text below the options in `adjutant eval --help`.

/// Fields of a case, for `--help`.
pub(crate) const CASE_FIELDS: &str = "\
A case is one JSON object on one line:
  id                  its name
  lang, class         optional labels; the summary also counts by them
  tasks               the tasks before the turn, in order of creation, so that their ids are 1, 2, ...:
                      [{\"description\": \"...\", \"completed\": false}]; \"...\" alone is an open task
  history             optional, what was said before: [{\"role\": \"user\" | \"assistant\", \"text\": \"...\"}]
  facts               optional, what is known before, in words: [\"...\"]
  said                optional, what the user says before, each in a conversation of its own: [\"...\"]
  input               what the user says
  expect              what it must lead to; what is not given is not judged
    .decision         one of these: [\"RESPOND_ONLY\", \"INVOKE_TOOL\", ...]
    .tools            exactly these were executed; [] is none
    .pending          exactly this waits for a yes: {\"tool\": \"delete_task\", \"task_id\": \"1\"}, or with words of
                      the question: {\"tool\": \"forget\", \"has\": [words]}; a list is several, in any order; [] is none
    .reply_has        words the reply contains, in any case
    .reply_lacks      words it does not
    .tasks_after      all tasks after the turn, in any order: [{\"has\": [words], \"completed\": false}]; in the place
                      of has, {\"is\": \"...\"} is all words of the description, and {\"is\": [\"...\", \"...\"]} one of
                      these; capitals, spaces and punctuation do not count
    .changes          all changes of tasks, every other task stays as it was; {} is none:
                      {\"added\": [TASK, ...], \"completed\": [\"2\"], \"renamed\": {\"4\": TASK}}, where TASK is
                      {\"is\": ...}, {\"has\": [words]} or \"...\", which is the same as is; not with tasks_after
    .facts_after      all facts after the turn, in any order: [[words]]
    .note_today       words of today's note; [] is that there is none
    .or               other results that are right too, each with the fields of expect: [{...}, ...]

Each case has a fresh store and user, and confirmations stay unanswered. With --memory, and where a case has one of facts,
said, facts_after and note_today, the agent is the one of the terminal, over an empty vault; else it is the task assistant.

Verdicts, the first that applies:
  right               everything that is expected holds
  wrong change        a task or fact was changed in another way than expected, or a destructive call ran
  asked               a question, or a call that waits for a yes, that is not expected
  pretence            nothing was changed, and the reply says that something was or will be (English only)
  missed              anything else

With --json: one object for each run of a case, then the totals.
--min-pass and --max-wrong-change count runs, and count for each model by itself. Without --min-pass all runs have to pass; with
--baseline or --max-wrong-change none has to.

Exit codes:
  0                   enough runs passed, wrong changes and worse cases are not more than allowed, no call was invalid and
                      nothing was deleted without a yes
  1                   one of these does not hold, or a file of results cannot be written
  2                   the command line, a case or the baseline is wrong; nothing was run
  3                   a model cannot be used: its key, its name or a setting is wrong

Examples:
  adjutant eval evals/todo.jsonl --save main.json
  adjutant eval evals/todo.jsonl --baseline main.json --max-wrong-change 0 --junit report.xml
  adjutant eval evals/todo.jsonl --repeat 5 --models embedded,ollama/qwen3:8b
";
