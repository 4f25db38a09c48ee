import type { Machine } from './machine.ts';

/** Milliseconds and seconds that an answer has: only what is lost takes longer, however busy the machine is. */
const patience = { connection: 20_000, arp: 10 };

/** What a client asked of an address, and what got no answer. */
export interface Losses {
  readonly connections: number;
  readonly unanswered: number;
  readonly arpQuestions: number;
  readonly arpUnanswered: number;
  /** TCP segments that the client's kernel has sent again: a lost SYN is answered late, and not seen otherwise. */
  readonly segmentsSentAgain: number;
}

/** Asks an address by one connection after the other, and by one ARP question after the other, until it is stopped. */
export class LossWatch {
  readonly #client: Machine;
  readonly #asking: Promise<void>;
  readonly #before: Promise<number>;
  #isOver = false;
  readonly #counts = { connections: 0, unanswered: 0, arpQuestions: 0, arpUnanswered: 0 };

  /** @param client a machine from which nothing else is sent by TCP. */
  constructor(client: Machine, address: string) {
    this.#client = client;
    this.#before = this.#sentAgain();
    this.#asking = this.#before.then(async () => {
      await Promise.all([this.#connect(address), this.#ask(address)]);
    });
  }

  /** How many answers there were by now, of connections and of ARP: the smaller number. */
  get answers(): number {
    const { connections, unanswered, arpQuestions, arpUnanswered } = this.#counts;
    return Math.min(connections - unanswered, arpQuestions - arpUnanswered);
  }

  async stop(): Promise<Losses> {
    this.#isOver = true;
    await this.#asking;
    return { ...this.#counts, segmentsSentAgain: (await this.#sentAgain()) - (await this.#before) };
  }

  async #connect(address: string): Promise<void> {
    while (!this.#isOver) {
      const outcome = await this.#client.ask(address, 80, { timeout: patience.connection });
      this.#counts.connections++;
      if (typeof outcome === 'string') this.#counts.unanswered++;
    }
  }

  async #ask(address: string): Promise<void> {
    while (!this.#isOver) {
      const words = ['-b', '-c', '1', '-w', String(patience.arp), '-I', 'eth0', address];
      const { exitCode } = await this.#client.host.exec('arping', words);
      this.#counts.arpQuestions++;
      if (exitCode !== 0) this.#counts.arpUnanswered++;
    }
  }

  /** `RetransSegs` of RFC 4022, which Linux counts for each network namespace. */
  async #sentAgain(): Promise<number> {
    const { stdout } = await this.#client.host.exec('cat', ['/proc/net/snmp']);
    const [names = [], values = []] = stdout
      .split('\n')
      .filter((line) => line.startsWith('Tcp:'))
      .map((line) => line.split(' '));
    return Number(values[names.indexOf('RetransSegs')]);
  }
}
