import type { ExecOptions, ExecResult, Host } from '../../src/host/host.ts';
import type { Command } from '../../src/node/nftables/elements.ts';
import { nftScripts } from '../../src/node/nftables/nft.ts';
import { isRecord, listAt } from '../../src/objects/json.ts';
import { printListing } from './nft-listing.ts';
import { NftRefusal, NftRuleset, protocols } from './nft-ruleset.ts';
import { parseCommands } from './nft-text.ts';

/** What a program of the machine prints; throws where it is asked for what it does not know. */
export type FakeProgram = (args: readonly string[]) => string;

/**
 * A kernel's tables of nft without a kernel, behind the seam that the agents have to a machine. It knows the ways in
 * which `nft.ts` runs nft, and throws for others. `test/network/nftables/fake-nft.test.ts` compares it with a real nft.
 */
export class FakeNft {
  /** Programs other than nft and sh are those that were given; sockets throw. */
  readonly host: Host;
  readonly #transactions: (readonly string[])[] = [];
  readonly #inputs: string[] = [];
  #ruleset = new NftRuleset();
  #refusal: string | undefined;
  #untilEnd = Number.POSITIVE_INFINITY;

  constructor(programs: Readonly<Record<string, FakeProgram>> = {}) {
    const noSockets = (): Promise<never> => Promise.reject(new Error('a fake machine has no sockets'));
    this.host = {
      exec: async (program, args, options = {}) => {
        if (program === 'nft') return this.#list(args);
        if (program === 'sh') return this.#shell(args, options);
        const known = programs[program];
        if (known === undefined) throw new Error(`the fake machine has no program ${program}`);
        return printed(known(args));
      },
      listen: noSockets,
      connect: noSockets,
      datagram: noSockets,
      sysctl: { get: () => Promise.resolve(undefined), set: () => Promise.resolve() },
    };
  }

  /**
   * The tables as `nft list ruleset` prints them, but in order of name.
   *
   * @param what of one table (`ip servicenet`), and of that these sets alone.
   */
  listing(what: { readonly table?: string; readonly sets?: readonly string[] } = {}): string {
    const { table: only, sets } = what;
    const tables = [...this.#ruleset.listing()].filter(
      ([table]) => only === undefined || table === `table ${only}`,
    );
    return printListing(
      new Map(
        tables.map(([table, blocks]) => [
          table,
          new Map([...blocks].filter(([head]) => sets?.includes(head.replace(/^\w+ /, '')) ?? true)),
        ]),
      ),
    );
  }

  /** Each transaction that was done, in nft's own language, one command a line. */
  get transactions(): readonly (readonly string[])[] {
    return this.#transactions;
  }

  /** The same as nft was given them: JSON, or text. */
  get inputs(): readonly string[] {
    return this.#inputs;
  }

  /**
   * Another client changes the kernel behind our back.
   *
   * @param text commands of nft: of tables, sets and elements, and what takes away.
   */
  apply(text: string): void {
    this.#transact(parseCommands(text));
  }

  /** The next transaction is refused with this message of nft; undefined: it is not. */
  refuseNext(message: string | undefined): void {
    this.#refusal = message;
  }

  /** The program nft, or the shell around it, is killed once it has done `n` more transactions: it does not say that it has, and the rest of its input is not read. */
  endAfter(n: number): void {
    this.#untilEnd = n;
  }

  async #shell(args: readonly string[], { input = '', output }: ExecOptions): Promise<ExecResult> {
    const [, script, , ...rest] = args;
    switch (script) {
      case nftScripts.transactions:
        return this.#runTransactions(input);
      case nftScripts.text:
        return this.#run(await wholeOf(input));
      case nftScripts.listings:
        for (const what of rest) {
          const listed = this.#list(['-j', '--numeric-protocol', 'list', ...what.split(' ')]);
          if (listed.exitCode !== 0) return listed;
          // Pieces end anywhere.
          for (const piece of listed.stdout.match(/[^]{1,1000}/g) ?? []) output?.(piece);
        }
        return printed('');
      case nftScripts.interactive:
        return this.#interact(input, output);
      default:
        throw new Error(`the fake nft does not know the script ${JSON.stringify(script)}`);
    }
  }

  /** Texts behind their lengths, as the shell reads them. */
  async #runTransactions(input: Input): Promise<ExecResult> {
    let unread = '';
    let said = '';
    for await (const piece of piecesOf(input)) {
      unread += piece;
      for (;;) {
        const [, bytes] = /^(\d+)\n/.exec(unread) ?? [];
        const start = (bytes?.length ?? 0) + 1;
        const end = start + Number(bytes);
        if (bytes === undefined || unread.length < end) break;
        const result = this.#run(unread.slice(start, end));
        if (result.exitCode !== 0) return result;
        said += 'done\n';
        unread = unread.slice(end);
      }
    }
    return printed(said);
  }

  /** One transaction by a program of its own. */
  #run(input: string): ExecResult {
    if (this.#untilEnd === 0) return this.#killed();
    const said = this.#done(input);
    if (this.#untilEnd === 0) return this.#killed();
    return said === '' ? printed('') : { exitCode: 1, stdout: '', stderr: said };
  }

  /** Each line is a transaction, a question, or the end. */
  async #interact(input: Input, output: ExecOptions['output']): Promise<ExecResult> {
    let unread = '';
    let said = '';
    const say = output ?? ((text: string) => (said += text));
    for await (const piece of piecesOf(input)) {
      const lines = `${unread}${piece}`.split('\n');
      unread = lines.pop() ?? '';
      for (const line of lines) {
        if (line === 'quit') return printed(said);
        if (`${line}\n` === nftScripts.question) {
          say('meta expression, datatype mark (packet mark) (basetype integer), 32 bits\n');
          continue;
        }
        if (this.#untilEnd === 0) return this.#killed();
        const refused = this.#done(line);
        if (this.#untilEnd === 0) return this.#killed();
        if (refused !== '') say(refused);
      }
    }
    return printed(said);
  }

  #killed(): ExecResult {
    this.#untilEnd = Number.POSITIVE_INFINITY;
    return { exitCode: 137, stdout: '', stderr: '' };
  }

  /** Does a transaction. @returns what nft says; "": all is well. */
  #done(input: string): string {
    const refusal = this.#refusal;
    this.#refusal = undefined;
    if (refusal !== undefined) return `${refusal}\n`;
    try {
      this.#transactions.push(this.#transact(commandsOf(input)));
    } catch (error) {
      if (error instanceof NftRefusal) return `${error.message}\n`;
      throw error;
    }
    this.#inputs.push(input);
    this.#untilEnd--;
    return '';
  }

  /** All or nothing. @returns the commands in nft's own language. */
  #transact(commands: readonly Command[]): readonly string[] {
    const next = this.#ruleset.copy();
    const texts = commands.map((command) => next.apply(command));
    this.#ruleset = next;
    return texts;
  }

  #list(args: readonly string[]): ExecResult {
    const at = args.indexOf('list');
    const options = new Set(args.slice(0, at));
    const [what = '', ...of] = args.slice(at + 1);
    const items = this.#items(what, of, options.has('-t'));
    if (items === undefined) {
      const stderr = `Error: No such file or directory\nlist ${what} ${of.join(' ')}\n`;
      return { exitCode: 1, stdout: '', stderr };
    }
    const listed = [{ metainfo: { version: 'fake', json_schema_version: 1 } }, ...items];
    const nftables = options.has('--numeric-protocol') ? numeric(listed) : listed;
    return printed(`${nftJson({ nftables })}\n`);
  }

  #items(what: string, of: readonly string[], isTerse: boolean): readonly object[] | undefined {
    const [family = '', table = '', name = ''] = of;
    switch (what) {
      case 'ruleset':
        return this.#ruleset.items(isTerse, of[0]);
      case 'chains':
        return this.#ruleset.items(true).filter((item) => 'chain' in item);
      case 'table':
        return this.#ruleset.itemsOfTable(family, table);
      case 'set':
      case 'map': {
        const item = this.#ruleset.itemOfSet(family, table, name);
        return item === undefined ? undefined : [item];
      }
      default:
        throw new Error(`the fake nft cannot list ${what}`);
    }
  }
}

type Input = NonNullable<ExecOptions['input']>;

function printed(stdout: string): ExecResult {
  return { exitCode: 0, stdout, stderr: '' };
}

async function* piecesOf(input: Input): AsyncGenerator<string> {
  if (typeof input === 'string') yield input;
  else yield* input;
}

async function wholeOf(input: Input): Promise<string> {
  let text = '';
  for await (const piece of piecesOf(input)) text += piece;
  return text;
}

function commandsOf(input: string): readonly Command[] {
  if (!input.startsWith('{')) return parseCommands(input);
  return listAt(JSON.parse(input), 'nftables').filter(isCommand);
}

function isCommand(value: unknown): value is Command {
  return isRecord(value);
}

/** With blanks, as nft prints it. */
function nftJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(nftJson).join(', ')}]`;
  if (!isRecord(value)) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, member]) => `${JSON.stringify(key)}: ${nftJson(member)}`)
    .join(', ')}}`;
}

/** Names of protocols as numbers. */
function numeric(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(numeric);
  if (isRecord(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, numeric(member)]));
  }
  return typeof value === 'string' ? (protocols[value] ?? value) : value;
}
