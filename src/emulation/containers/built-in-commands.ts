import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { errorMessage } from '../../objects/status.ts';
import { fetchOf, type FetchPlace, fetchUrl } from './built-in-fetch.ts';

/**
 * The few programs that a container has where those of the machine do not run: simple commands, alone or as a list of
 * them in `sh -c` (POSIX shell, 2.9.1 and 2.9.3), on the files and in the network of its Pod.
 */

/** A file or a folder of a container. */
export interface ListedFile {
  readonly name: string;
  readonly isFolder: boolean;
  readonly size: number;
}

/** The container that a command runs in. */
export interface CommandPlace extends Pick<FetchPlace, 'lookUp' | 'connect'> {
  readonly hostname: string;
  readonly environment: ReadonlyMap<string, string>;
  readonly workingDirectory: string;
  /** @throws the system's error. */
  readonly readFile: (path: string) => Promise<Buffer>;
  /** Asks the servers of `/etc/resolv.conf`, and no file. @throws {Error} where none has the name. */
  readonly resolve: FetchPlace['lookUp'];
  /** @throws the system's error. */
  readonly list: (path: string) => Promise<readonly ListedFile[]>;
}

/** Where a command prints. */
export type CommandOutput = Pick<FetchPlace, 'stdout' | 'stderr'>;

type Run = CommandPlace & FetchPlace;

/** One command of a list, and when it runs: always, or by the exit code of the one before. */
interface Step {
  readonly after: ';' | '&&' | '||';
  readonly argv: readonly string[];
}

/** Why a command line is no built-in one: it has no words for it. */
class NotBuiltIn extends Error {}

/** Why a command line that is not built in is not run. */
export function refusal([program = '']: readonly string[]): string {
  return `exec: "${program}": not a built-in program, and those of this machine do not run: choose --containers=auto, or a server instead of the image with --image NAME=server`;
}

/**
 * A command line that is built in.
 *
 * @returns runs it to its end, and returns its exit code; undefined for one that is not built in.
 */
export function builtInCommandLine(
  argv: readonly string[],
  environment: ReadonlyMap<string, string>,
): ((place: CommandPlace, output: CommandOutput, signal: AbortSignal) => Promise<number>) | undefined {
  const steps = stepsOf(argv, environment);
  if (steps === undefined) return undefined;
  return async (place, output, signal) => {
    const run: Run = { ...place, ...output, signal };
    let code = 0;
    for (const { after, argv: words } of steps) {
      if ((after === '&&' && code !== 0) || (after === '||' && code === 0)) continue;
      const [program = '', ...args] = words;
      code = (await commands.get(basename(program))?.(run, args)) ?? 127;
    }
    return code;
  };
}

function stepsOf(
  argv: readonly string[],
  environment: ReadonlyMap<string, string>,
): readonly Step[] | undefined {
  const [program = '', option = '', script] = argv;
  const isShell = /^(?:.*\/)?(?:sh|bash|ash)$/.test(program);
  try {
    const steps =
      isShell && option === '-c' && script !== undefined
        ? parse(script, environment)
        : [{ after: ';' as const, argv }];
    return steps.every(({ argv: [name = '', ...args] }) => isKnown(basename(name), args)) ? steps : undefined;
  } catch (error) {
    if (error instanceof NotBuiltIn) return undefined;
    throw error;
  }
}

/** What has another meaning in a shell than that of its characters. */
const special = /[|&;<>()`*?[\]#~=%{}!]/;

/** @throws {NotBuiltIn} for more than a list of simple commands. */
function parse(script: string, environment: ReadonlyMap<string, string>): readonly Step[] {
  const steps: { after: Step['after']; argv: string[] }[] = [];
  let step: { after: Step['after']; argv: string[] } = { after: ';', argv: [] };
  let word: string | undefined;
  const endWord = (): void => {
    if (word !== undefined) step.argv.push(word);
    word = undefined;
  };
  const endStep = (after: Step['after']): void => {
    endWord();
    if (step.argv[0] === 'exec') step.argv.shift();
    if (step.argv.length > 0) steps.push(step);
    else if (step.after !== ';' || after !== ';') throw new NotBuiltIn();
    step = { after, argv: [] };
  };
  const token =
    /\s*\n|\s*(&&|\|\|)|\s*;|\s+|'([^']*)'|"((?:[^"\\`]|\\.)*)"|\\(.)|\$(?:\{(\w+)\}|(\w+))|(.)/gsy;
  for (const [all, operator, single, double, escaped, braced, name, plain] of script.matchAll(token)) {
    if (operator === '&&' || operator === '||') endStep(operator);
    else if (/^\s*[;\n]$/.test(all)) endStep(';');
    else if (/^\s+$/.test(all)) endWord();
    else if (single !== undefined) word = (word ?? '') + single;
    else if (double !== undefined) word = (word ?? '') + expanded(double, environment);
    else if (escaped !== undefined) word = (word ?? '') + escaped;
    else if (braced !== undefined || name !== undefined) {
      // Unquoted, a value is split into words.
      const value = environment.get(braced ?? name ?? '') ?? '';
      if (/\s/.test(value)) throw new NotBuiltIn();
      if (value !== '') word = (word ?? '') + value;
    } else if (plain !== undefined) {
      const isOption = plain === '=' && word !== undefined && word.startsWith('-');
      const isFormat = plain === '%' && word !== undefined && word.startsWith('+');
      const isQuery = (plain === '?' || plain === '=') && word !== undefined && word.includes('://');
      if (
        (special.test(plain) && !isOption && !isFormat && !isQuery) ||
        plain === '$' ||
        plain === '"' ||
        plain === "'"
      )
        throw new NotBuiltIn();
      word = (word ?? '') + plain;
    }
  }
  endStep(';');
  return steps;
}

function expanded(text: string, environment: ReadonlyMap<string, string>): string {
  if (/\$\(/.test(text)) throw new NotBuiltIn();
  return text.replaceAll(
    /\\([\\"$`])|\$(?:\{(\w+)\}|(\w+))/g,
    (_, escaped?: string, braced?: string, name?: string) =>
      escaped ?? environment.get(braced ?? name ?? '') ?? '',
  );
}

type Command = (run: Run, args: readonly string[]) => Promise<number> | number;

const unitsMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of `sleep 1.5` or `sleep 2m`; undefined for what is no duration. */
function sleepMs(args: readonly string[]): number | undefined {
  const [, amount, unit = 's'] =
    /^(\d+(?:\.\d+)?)([smhd]?)$/.exec(args.length === 1 ? (args[0] ?? '') : '') ?? [];
  if (amount !== undefined) return Math.min(Number(amount) * (unitsMs[unit || 's'] ?? 1000), 2 ** 31 - 1);
  return args.length === 1 && /^inf(?:inity)?$/.test(args[0] ?? '') ? 2 ** 31 - 1 : undefined;
}

/** Whether a command has these arguments here. */
function isKnown(name: string, args: readonly string[]): boolean {
  if (!commands.has(name)) return false;
  if (name === 'sleep') return sleepMs(args) !== undefined;
  if (name === 'date')
    return args.length === 0 || (args.length <= 2 && dateText(args, new Date(0)) !== undefined);
  if (name === 'wget' || name === 'curl') return fetchOf(name, args) !== undefined;
  if (name === 'ls') return args.every((arg) => !arg.startsWith('-') || /^-[1al]+$/.test(arg));
  if (name === 'nslookup') return args.length >= 1 && args.length <= 2;
  if (name === 'env' || name === 'id' || name === 'hostname') return args.length === 0;
  return name !== 'cat' || (args.length > 0 && args.every((arg) => !arg.startsWith('-')));
}

const commands: ReadonlyMap<string, Command> = new Map<string, Command>([
  ['true', () => 0],
  ['false', () => 1],
  [':', () => 0],
  [
    'echo',
    ({ stdout }, args) => {
      const isOpen = args[0] === '-n';
      stdout(`${(isOpen ? args.slice(1) : args).join(' ')}${isOpen ? '' : '\n'}`);
      return 0;
    },
  ],
  [
    'env',
    ({ environment, stdout }) =>
      print(
        stdout,
        [...environment].map(([name, value]) => `${name}=${value}`),
      ),
  ],
  [
    'printenv',
    ({ environment, stdout }, [name]) => {
      const found = [...environment].filter(([each]) => name === undefined || each === name);
      print(
        stdout,
        found.map(([each, value]) => (name === undefined ? `${each}=${value}` : value)),
      );
      return found.length === 0 ? 1 : 0;
    },
  ],
  ['hostname', ({ hostname, stdout }) => print(stdout, [hostname])],
  ['whoami', ({ stdout }) => print(stdout, ['root'])],
  ['id', ({ stdout }) => print(stdout, ['uid=0(root) gid=0(root) groups=0(root)'])],
  ['pwd', ({ workingDirectory, stdout }) => print(stdout, [workingDirectory])],
  ['date', ({ stdout }, args) => print(stdout, [dateText(args, new Date()) ?? ''])],
  [
    'sleep',
    async ({ signal }, args) => {
      await delay(sleepMs(args) ?? 0, undefined, { signal });
      return 0;
    },
  ],
  [
    'cat',
    async (run, paths) => await each(run, 'cat', paths, async (path) => run.stdout(await run.readFile(path))),
  ],
  [
    'ls',
    async (run, args) => {
      const options = args.filter((arg) => arg.startsWith('-')).join('');
      const paths = args.filter((arg) => !arg.startsWith('-'));
      return await each(run, 'ls', paths.length === 0 ? ['.'] : paths, async (path) => {
        const listed = (await run.list(path)).filter(
          ({ name }) => options.includes('a') || !name.startsWith('.'),
        );
        if (paths.length > 1) run.stdout(`${path}:\n`);
        print(
          run.stdout,
          listed.map((file) => (options.includes('l') ? longLine(file) : file.name)),
        );
      });
    },
  ],
  ['nslookup', nslookup],
  ['wget', async (run, args) => await fetchUrl(run, fetchOf('wget', args))],
  ['curl', async (run, args) => await fetchUrl(run, fetchOf('curl', args))],
]);

function print(to: CommandOutput['stdout'], lines: readonly string[]): number {
  if (lines.length > 0) to(`${lines.join('\n')}\n`);
  return 0;
}

/** Does something with each path. @returns 1 where one of them failed. */
async function each(
  { workingDirectory, stderr }: Run,
  program: string,
  paths: readonly string[],
  work: (path: string) => Promise<void>,
): Promise<number> {
  let code = 0;
  for (const path of paths) {
    try {
      await work(path.startsWith('/') ? path : join(workingDirectory, path));
    } catch (error) {
      code = 1;
      const why =
        error instanceof Error && 'code' in error && error.code === 'ENOENT'
          ? 'No such file or directory'
          : errorMessage(error);
      stderr(`${program}: ${path}: ${why}\n`);
    }
  }
  return code;
}

function longLine({ name, isFolder, size }: ListedFile): string {
  return `${isFolder ? 'drwxr-xr-x' : '-rw-r--r--'} 1 root root ${String(size).padStart(8)} ${name}`;
}

/** The text of `date`, in UTC; undefined for a format that is not known. */
function dateText(args: readonly string[], date: Date): string | undefined {
  const formats = args.filter((arg) => arg !== '-u');
  if (formats.length === 0) {
    const [day = '', month = '', date2 = '', year = ''] = date
      .toUTCString()
      .replace(',', '')
      .split(' ')
      .map((_, i, all) => all[[0, 2, 1, 3][i] ?? i] ?? '');
    return `${day} ${month} ${date2.replace(/^0/, ' ')} ${date.toISOString().slice(11, 19)} UTC ${year}`;
  }
  const [format = ''] = formats;
  if (formats.length > 1 || !format.startsWith('+')) return undefined;
  const iso = date.toISOString();
  const parts: Readonly<Record<string, string>> = {
    ...{
      Y: iso.slice(0, 4),
      m: iso.slice(5, 7),
      d: iso.slice(8, 10),
      F: iso.slice(0, 10),
      T: iso.slice(11, 19),
    },
    ...{
      H: iso.slice(11, 13),
      M: iso.slice(14, 16),
      S: iso.slice(17, 19),
      s: String(Math.floor(date.getTime() / 1000)),
    },
    ...{ N: `${iso.slice(20, 23)}000000`, '%': '%', Z: 'UTC', z: '+0000' },
  };
  const unknown = [...format.slice(1).matchAll(/%(.)/g)].some(([, letter = '']) => !(letter in parts));
  return unknown
    ? undefined
    : format.slice(1).replaceAll(/%(.)/g, (_, letter: string) => parts[letter] ?? '');
}

async function nslookup(
  { resolve, stdout, stderr, signal }: Run,
  [name = '']: readonly string[],
): Promise<number> {
  try {
    const addresses = await resolve(name, signal);
    return print(
      stdout,
      addresses.flatMap((address) => [`Name:\t${name}`, `Address: ${address}`]),
    );
  } catch (error) {
    stderr(`nslookup: ${name}: ${errorMessage(error)}\n`);
    return 1;
  }
}
