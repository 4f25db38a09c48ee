/** Characters that wait for the channel. */
const maxWaiting = 256 * 1024;

/**
 * Lines on their way to a log. What comes while the channel takes those before waits, up to a limit: clients may cause
 * lines faster than a log takes them. Those that do not fit are left out, and a line says how many.
 */
export class LogQueue {
  readonly #send: (text: string, taken: () => void) => void;
  #waiting = '';
  #missing = 0;
  #isSending = false;

  /** @param send calls back when the channel has taken the text. */
  constructor(send: (text: string, taken: () => void) => void) {
    this.#send = send;
  }

  write(line: string): void {
    if (this.#waiting.length + line.length > maxWaiting) this.#missing++;
    else this.#waiting += line;
    if (!this.#isSending) this.flush();
  }

  /** Sends what waits, whether or not what was sent before is taken. */
  flush(): void {
    const missing =
      this.#missing === 0 ? '' : `servicenet: ${this.#missing} lines are missing, there were too many\n`;
    const text = this.#waiting + missing;
    this.#waiting = '';
    this.#missing = 0;
    this.#isSending = text !== '';
    if (this.#isSending) this.#send(text, () => this.flush());
  }
}
