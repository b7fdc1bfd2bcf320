//! One good answer in each language: thinking, words, two calls, counts.

/// A good answer.
pub(super) struct Seed {
    framing: Framing,
    /// Streamed.
    pub(super) events: &'static [&'static str],
    /// Whole.
    pub(super) whole: &'static str,
}

#[derive(Clone, Copy)]
enum Framing {
    Events,
    Lines,
}

impl Seed {
    pub(super) fn stream(&self) -> String {
        self.events.iter().map(|event| self.frame(event)).collect()
    }

    pub(super) fn frame(&self, event: &str) -> String {
        match self.framing {
            Framing::Events => format!("data: {event}\n\n"),
            Framing::Lines => format!("{event}\n"),
        }
    }
}

/// The language of a provider.
pub(super) fn seed(provider: &str) -> &'static Seed {
    match provider {
        "gemini" | "vertex" => &GEMINI,
        "openai" => &RESPONSES,
        "anthropic" => &ANTHROPIC,
        "ollama" => &OLLAMA,
        _ => &CHAT,
    }
}

const GEMINI: Seed = Seed {
    framing: Framing::Events,
    events: &[
        r#"{"candidates": [{"content": {"role": "model", "parts": [{"text": "Hm.", "thought": true}]}, "index": 0}], "modelVersion": "m"}"#,
        r#"{"candidates": [{"content": {"role": "model", "parts": [{"text": "Gerne, schön 🦀.", "thoughtSignature": "c2ln"}]}}]}"#,
        r#"{"candidates": [{"content": {"parts": [{"functionCall": {"id": "1", "name": "add_note", "args": {"text": "milk"}}}, {"functionCall": {"name": "add_note", "args": {"text": "bread"}}}]}}]}"#,
        r#"{"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3, "thoughtsTokenCount": 1, "totalTokenCount": 13}}"#,
    ],
    whole: r#"{"candidates": [{"content": {"role": "model", "parts": [{"text": "Hm.", "thought": true}, {"text": "Gerne, schön 🦀.", "thoughtSignature": "c2ln"}, {"functionCall": {"id": "1", "name": "add_note", "args": {"text": "milk"}}}, {"functionCall": {"name": "add_note", "args": {"text": "bread"}}}]}, "finishReason": "STOP", "index": 0}], "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3, "thoughtsTokenCount": 1, "totalTokenCount": 13}, "modelVersion": "m"}"#,
};

const CHAT: Seed = Seed {
    framing: Framing::Events,
    events: &[
        r#"{"id": "x", "model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": null}]}"#,
        r#"{"id": "x", "model": "m", "choices": [{"index": 0, "delta": {"reasoning_content": "Hm."}, "finish_reason": null}]}"#,
        r#"{"id": "x", "model": "m", "choices": [{"index": 0, "delta": {"content": "Gerne, schön 🦀."}, "finish_reason": null}]}"#,
        r#"{"id": "x", "model": "m", "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "call_0", "type": "function", "function": {"name": "add_note", "arguments": ""}}]}}]}"#,
        r#"{"id": "x", "model": "m", "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{\"text\": \"milk\"}"}}]}}]}"#,
        r#"{"id": "x", "model": "m", "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 1, "id": "call_1", "type": "function", "function": {"name": "add_note", "arguments": "{\"text\": \"bread\"}"}}]}}]}"#,
        r#"{"id": "x", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}"#,
        r#"{"id": "x", "model": "m", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13, "completion_tokens_details": {"reasoning_tokens": 1}}}"#,
    ],
    whole: r#"{"id": "x", "model": "m", "choices": [{"index": 0, "message": {"role": "assistant", "content": "Gerne, schön 🦀.", "reasoning_content": "Hm.", "refusal": null, "tool_calls": [{"id": "call_0", "type": "function", "function": {"name": "add_note", "arguments": "{\"text\": \"milk\"}"}}, {"id": "call_1", "type": "function", "function": {"name": "add_note", "arguments": "{\"text\": \"bread\"}"}}]}, "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13, "completion_tokens_details": {"reasoning_tokens": 1}}}"#,
};

const RESPONSES: Seed = Seed {
    framing: Framing::Events,
    events: &[
        r#"{"type": "response.created", "response": {"id": "r", "status": "in_progress", "output": [], "model": "m"}}"#,
        r#"{"type": "response.output_item.added", "output_index": 0, "item": {"id": "rs", "type": "reasoning", "summary": []}}"#,
        r#"{"type": "response.reasoning_summary_text.delta", "output_index": 0, "item_id": "rs", "summary_index": 0, "delta": "Hm."}"#,
        r#"{"type": "response.output_item.done", "output_index": 0, "item": {"id": "rs", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "c2ln"}}"#,
        r#"{"type": "response.output_item.added", "output_index": 1, "item": {"id": "msg", "type": "message", "role": "assistant", "status": "in_progress", "content": []}}"#,
        r#"{"type": "response.output_text.delta", "output_index": 1, "item_id": "msg", "content_index": 0, "delta": "Gerne, schön 🦀."}"#,
        r#"{"type": "response.output_item.done", "output_index": 1, "item": {"id": "msg", "type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Gerne, schön 🦀.", "annotations": []}]}}"#,
        r#"{"type": "response.output_item.added", "output_index": 2, "item": {"id": "fc_0", "type": "function_call", "status": "in_progress", "call_id": "call_0", "name": "add_note", "arguments": ""}}"#,
        r#"{"type": "response.function_call_arguments.delta", "output_index": 2, "item_id": "fc_0", "delta": "{\"text\": \"milk\"}"}"#,
        r#"{"type": "response.output_item.done", "output_index": 2, "item": {"id": "fc_0", "type": "function_call", "status": "completed", "call_id": "call_0", "name": "add_note", "arguments": "{\"text\": \"milk\"}"}}"#,
        r#"{"type": "response.output_item.done", "output_index": 3, "item": {"id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_1", "name": "add_note", "arguments": "{\"text\": \"bread\"}"}}"#,
        r#"{"type": "response.completed", "response": {"id": "r", "status": "completed", "model": "m", "output": [{"id": "rs", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "c2ln"}, {"id": "msg", "type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Gerne, schön 🦀.", "annotations": []}]}, {"id": "fc_0", "type": "function_call", "status": "completed", "call_id": "call_0", "name": "add_note", "arguments": "{\"text\": \"milk\"}"}, {"id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_1", "name": "add_note", "arguments": "{\"text\": \"bread\"}"}], "usage": {"input_tokens": 9, "output_tokens": 4, "output_tokens_details": {"reasoning_tokens": 1}, "total_tokens": 13}}}"#,
    ],
    whole: r#"{"id": "r", "object": "response", "status": "completed", "model": "m", "error": null, "incomplete_details": null, "output": [{"id": "rs", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "c2ln"}, {"id": "msg", "type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Gerne, schön 🦀.", "annotations": []}]}, {"id": "fc_0", "type": "function_call", "status": "completed", "call_id": "call_0", "name": "add_note", "arguments": "{\"text\": \"milk\"}"}, {"id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_1", "name": "add_note", "arguments": "{\"text\": \"bread\"}"}], "usage": {"input_tokens": 9, "output_tokens": 4, "output_tokens_details": {"reasoning_tokens": 1}, "total_tokens": 13}}"#,
};

const ANTHROPIC: Seed = Seed {
    framing: Framing::Events,
    events: &[
        r#"{"type": "message_start", "message": {"id": "msg", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": null, "usage": {"input_tokens": 9, "cache_read_input_tokens": 2, "output_tokens": 1}}}"#,
        r#"{"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}"#,
        r#"{"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}}"#,
        r#"{"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}}"#,
        r#"{"type": "content_block_stop", "index": 0}"#,
        r#"{"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}"#,
        r#"{"type": "ping"}"#,
        r#"{"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Gerne, schön 🦀."}}"#,
        r#"{"type": "content_block_stop", "index": 1}"#,
        r#"{"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "toolu_0", "name": "add_note", "input": {}}}"#,
        r#"{"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ""}}"#,
        r#"{"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "{\"text\": \"milk\"}"}}"#,
        r#"{"type": "content_block_stop", "index": 2}"#,
        r#"{"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use", "id": "toolu_1", "name": "add_note", "input": {"text": "bread"}}}"#,
        r#"{"type": "content_block_stop", "index": 3}"#,
        r#"{"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": {"output_tokens": 4}}"#,
        r#"{"type": "message_stop"}"#,
    ],
    whole: r#"{"id": "msg", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, {"type": "text", "text": "Gerne, schön 🦀.", "citations": null}, {"type": "tool_use", "id": "toolu_0", "name": "add_note", "input": {"text": "milk"}}, {"type": "tool_use", "id": "toolu_1", "name": "add_note", "input": {"text": "bread"}}], "stop_reason": "tool_use", "stop_sequence": null, "usage": {"input_tokens": 9, "cache_read_input_tokens": 2, "output_tokens": 4}}"#,
};

const OLLAMA: Seed = Seed {
    framing: Framing::Lines,
    events: &[
        r#"{"model": "m", "message": {"role": "assistant", "content": "", "thinking": "Hm."}, "done": false}"#,
        r#"{"model": "m", "message": {"role": "assistant", "content": "Gerne, schön 🦀."}, "done": false}"#,
        r#"{"model": "m", "message": {"role": "assistant", "content": "", "tool_calls": [{"function": {"index": 0, "name": "add_note", "arguments": {"text": "milk"}}}]}, "done": false}"#,
        r#"{"model": "m", "message": {"role": "assistant", "content": "", "tool_calls": [{"id": "call_1", "function": {"index": 1, "name": "add_note", "arguments": {"text": "bread"}}}]}, "done": false}"#,
        r#"{"model": "m", "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop", "total_duration": 1, "prompt_eval_count": 9, "eval_count": 4}"#,
    ],
    whole: r#"{"model": "m", "created_at": "2026-11-22T00:00:00Z", "message": {"role": "assistant", "content": "Gerne, schön 🦀.", "thinking": "Hm.", "tool_calls": [{"function": {"index": 0, "name": "add_note", "arguments": {"text": "milk"}}}, {"id": "call_1", "function": {"index": 1, "name": "add_note", "arguments": {"text": "bread"}}}]}, "done": true, "done_reason": "stop", "total_duration": 1, "prompt_eval_count": 9, "eval_count": 4}"#,
};
