// A page opened from a file may start no worker: its script runs in a hidden frame instead, and speaks as a worker does.
// The search is the only one to ask for it.
if (location.protocol === "file:")
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      this.inside = inside;
      this.frame = frame;
      inside.document.open();
      inside.document.write("<!doctype html><title>worker</title>");
      inside.document.close();
      inside.postMessage = (data) => {
        const message = new MessageEvent("message", { data });
        this.dispatchEvent(message);
        this.onmessage?.(message);
      };
      inside.importScripts = (...scripts) =>
        scripts.reduce(
          (before, script) =>
            before.then(
              () =>
                new inside.Promise((done, failed) => {
                  const element = inside.document.createElement("script");
                  Object.assign(element, { src: script, onload: done, onerror: failed });
                  inside.document.body.append(element);
                }),
            ),
          inside.Promise.resolve(),
        );
      this.ready = inside.importScripts(new URL(address, location.href).href);
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
