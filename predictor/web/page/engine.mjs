// The predictor in WebAssembly: texts in, texts out.

// Makes an engine of emscripten's module factory, the bytes of the module and those of the records.
export async function openEngine(factory, wasmBinary, records) {
  const module = await factory({ wasmBinary });
  const send = (bytes, call) => {
    const at = module._malloc(bytes.length + 1);
    module.HEAPU8.set(bytes, at);
    module.HEAPU8[at + bytes.length] = 0;
    try {
      return call(at);
    } finally {
      module._free(at);
    }
  };
  const reply = () => {
    const at = module._stepcast_web_reply();
    return new TextDecoder().decode(
      module.HEAPU8.slice(at, at + module._stepcast_web_reply_size()),
    );
  };
  const encode = (text) => new TextEncoder().encode(text);
  const status = send(records, (at) => module._stepcast_web_open(at, records.length));
  if (status !== 200) throw new Error(JSON.parse(reply()).detail);
  return {
    // The text of an answer and its status, as the service gives them over HTTP.
    askText(target, body = "") {
      const bytes = encode(body);
      const code = send(encode(target), (name) =>
        send(bytes, (at) => module._stepcast_web_ask(name, at, bytes.length)),
      );
      return { status: code, text: reply() };
    },
    // The answer; throws an Error with the program's own sentence where there is none.
    ask(target, question) {
      const { status: code, text } = this.askText(target, question ? JSON.stringify(question) : "");
      if (target === "plot" && code === 200) return text;
      const answer = JSON.parse(text);
      if (code !== 200) throw new Error(answer.detail ?? answer.title);
      return answer;
    },
  };
}
