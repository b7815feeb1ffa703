// Browsers refuse workers to pages opened from disk. The search then runs in a hidden frame instead.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      frame.srcdoc = `<script src="${address}"></script>`
      this.inside = new Promise((ready) => {
        frame.onload = () => {
          const inside = frame.contentWindow
          inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
          ready(inside)
        }
      })
      document.body.appendChild(frame)
    }
    async postMessage(data) {
      const inside = await this.inside
      inside.dispatchEvent(new MessageEvent("message", { data }))
    }
  }
