import { minorVersion } from '../objects/kubernetes-version.ts';
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { Argument, Command, CommanderError, type Help, Option } from 'commander';
import { controllerConfig, controllerFlags } from '../flags/controller.ts';
import { dnsConfig, dnsFlags } from '../flags/dns.ts';
import { flowsConfig, flowsFlags } from '../flags/flows.ts';
import { nodeConfig, nodeFlags } from '../flags/node.ts';
import { pageConfig, pageFlags } from '../flags/page.ts';
import {
  importConfig,
  importFlags,
  importSources,
  poolsConfig,
  poolsFlags,
  poolsPlanConfig,
  poolsPlanFlags,
} from '../flags/pools.ts';
import { ConfigError, type Given, longName, type Table } from '../flags/readers.ts';
import { auditConfig, auditFlags, topConfig, topFlags, traceConfig, traceFlags } from '../flags/reports.ts';
import { routerConfig, routerFlags } from '../flags/router.ts';
import { runConfig, runFlags } from '../flags/run.ts';
import { upConfig, upFlags } from '../flags/up.ts';
import { numberAt } from '../objects/json.ts';
import { version } from '../telemetry/version.ts';
import { kubeconfigOfUp, localChoices, selectRemote } from './choices.ts';
import { explanation, listenProblem } from './explanation.ts';

/** Exit code of a wrong command line, as of shells and most programs: nothing was started. */
const misused = 2;

/**
 * Runs the command that the arguments name.
 * @returns the exit code: 0 on success, 1 on failure, 2 for a wrong command line; commands may define others.
 */
export async function runCommandLine(args: readonly string[]): Promise<number> {
  try {
    await program().parseAsync(args);
    return Number(process.exitCode ?? 0);
  } catch (error) {
    // commander has printed its own message; other errors are printed in one line.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : misused;
    process.stderr.write(`servicenet: ${await explanation(error)}\n`);
    return error instanceof ConfigError ? misused : 1;
  }
}

/** The command line. Commands are loaded when their flags are right, so that `--help` is fast. */
export function program(): Command {
  const root = new Command('servicenet')
    .description(
      'Kubernetes Service networking: an API server for tests, and a load balancer controller for any cluster',
    )
    .version(version(), '-v, --version')
    .addOption(new Option('-V').hideHelp())
    .on('option:V', () => {
      process.stdout.write(`${version()}\n`);
      throw new CommanderError(0, 'commander.version', version());
    })
    .configureHelp({ formatItem: helpItem })
    .showHelpAfterError('(run with --help for usage)')
    .exitOverride()
    // An option after a subcommand belongs to it, even if its parent has it too (pools, pools plan).
    .enablePositionalOptions();
  for (const each of commands()) {
    root.addCommand(each);
    inherit(each, root);
  }
  root
    .command('version')
    .description('print the version')
    .action(() => {
      const api = `API of Kubernetes ${minorVersion}`;
      process.stdout.write(`servicenet ${version()} (${api}, Node.js ${process.version})\n`);
    });
  root
    .command('completion')
    .description('print a script that completes command lines; in bash: source <(servicenet completion bash)')
    .addArgument(new Argument('<shell>', 'the shell').choices(['bash', 'zsh', 'fish']))
    .action(async (shell: string) => {
      const { completionScripts } = await import('./completion.ts');
      process.stdout.write(Object.entries(completionScripts).find(([name]) => name === shell)?.[1] ?? '');
    });
  root
    .command('complete', { hidden: true })
    .argument('[words...]')
    .action(async (words: readonly string[]) => {
      const { completions } = await import('./completion.ts');
      process.stdout.write(
        completions(root, words)
          .map((word) => `${word}\n`)
          .join(''),
      );
    });
  return root;
}

/** The widest term that has its description beside it; behind a wider one it begins on the next line. */
const maxTermWidth = 28;

/** An item of the help. commander itself wraps no description that long terms leave little room for. */
function helpItem(term: string, termWidth: number, description: string, helper: Help): string {
  const width = Math.min(termWidth, maxTermWidth);
  const indent = ' '.repeat(width + 4);
  const room = Math.max((helper.helpWidth ?? 80) - indent.length, 20);
  const text = helper.boxWrap(description, room).replaceAll('\n', `\n${indent}`);
  return `  ${term.length > width ? `${term}\n${indent}` : `${term.padEnd(width)}  `}${text}`;
}

function commands(): readonly Command[] {
  return [
    command(
      'up',
      'run a Kubernetes API server with controllers and simulated nodes, for tests and experiments',
      upFlags,
      (given, words) => upConfig(given, words, newKubeconfig(words), localChoices),
      async (config) => (await import('./up.ts')).up(config),
    )
      .usage('[options] [-- program...]')
      .argument(
        '[program...]',
        'run this program with KUBECONFIG set, then exit with its exit code; --port then defaults to any free port',
      ),
    command(
      'controller',
      'run the load balancer and other controllers against a cluster',
      controllerFlags,
      (given) => controllerConfig(given, selectRemote),
      async (config) => (await import('./controller.ts')).controller(config),
    ),
    command(
      'node',
      'carry the traffic of Services on this node, in the place of kube-proxy, or announce their addresses',
      nodeFlags,
      (given) => nodeConfig(given, { environment: process.env, hostname: hostname() }),
      async (config) => (await import('./node.ts')).node(config),
    ),
    command(
      'dns',
      "answer DNS queries for a cluster's Services and Pods, in the place of CoreDNS",
      dnsFlags,
      dnsConfig,
      async (config) => (await import('./dns.ts')).dns(config),
    ),
    command(
      'router',
      'carry HTTP from outside to the Services of a cluster, as Ingresses and Routes say',
      routerFlags,
      routerConfig,
      async (config) => (await import('./router.ts')).router(config),
    ),
    command(
      'audit',
      'report cluster IPs and node ports that are duplicate, leaked or out of range; exit with 1 if there are any',
      auditFlags,
      auditConfig,
      reporting(async (config) => (await import('./audit.ts')).audit(config)),
    ),
    command(
      'top',
      'show a cluster live: Services, Pods, nodes, policies, addresses, problems and Events; without a terminal, print changes as lines',
      topFlags,
      topConfig,
      async (config) => (await import('./top/view.ts')).top(config),
    ),
    command(
      'page',
      'print the link to the page of a running servicenet up; or serve a page of another cluster, which only reads it',
      pageFlags,
      pageConfig,
      async (config) => (await import('./page.ts')).page(config),
    ),
    command(
      'run',
      'run a program of this machine in the cluster network of servicenet up',
      runFlags,
      (given, words) =>
        runConfig(given, words, { environment: process.env['KUBECONFIG'], default: kubeconfigOfUp() }),
      async (config) => (await import('./run.ts')).runProgramInside(config),
    )
      .usage('[options] -- program...')
      .argument('<program...>', 'the program, and its arguments'),
    command(
      'trace',
      'say where a connection goes, through DNS, Services, NetworkPolicies and EgressFirewalls; exit with 0 if it arrives, 1 if not, 2 if objects do not tell',
      traceFlags,
      traceConfig,
      reporting(async (config) => (await import('./trace.ts')).trace(config)),
    )
      .argument(
        '[source]',
        'pod/NAMESPACE/NAME, deploy/NAMESPACE/NAME (a Pod of it), node/NAME, outside or an address',
      )
      .argument(
        '[destination]',
        'svc/NAMESPACE/NAME:PORT, pod/… or deploy/NAMESPACE/NAME:PORT, node/NAME:PORT, outside:PORT, http://HOST/PATH, an address or a name',
      ),
    command(
      'flows',
      'show connections in the cluster network of servicenet up, or of a cluster whose nodes run servicenet node: where they were led to, what became of them, and which object decided',
      flowsFlags,
      (given) => flowsConfig(given, { environment: process.env['KUBECONFIG'], default: kubeconfigOfUp() }),
      reporting(async (config) => (await import('./flows.ts')).flows(config)),
    ),
    command(
      'pools',
      'show AddressPools, who holds which address, and which Services are waiting',
      poolsFlags,
      poolsConfig,
      async (config) => (await import('./pools.ts')).pools(config),
    )
      .enablePositionalOptions()
      .addCommand(
        command(
          'plan',
          'show what an edit of AddressPools would do to Services, without making it; exit with 1 if addresses would change',
          poolsPlanFlags,
          poolsPlanConfig,
          reporting(async (config) => (await import('./pools.ts')).poolsPlan(config)),
        ),
      ),
    command(
      'import',
      "print another load balancer's pools as AddressPools that cover every address in use, or Ingresses as Gateways and Routes",
      importFlags,
      importConfig,
      async (config) => (await import('./pools.ts')).printImport(config),
    ).addArgument(
      new Argument('<source>', 'the load balancer whose pools to print, or ingress').choices(importSources),
    ),
  ];
}

/**
 * A command.
 *
 * @param read checks the flags and the operands. A wrong one costs no load of the command's code.
 * @param run resolves with the exit code, or without one on success.
 */
function command<C>(
  name: string,
  about: string,
  table: Table,
  read: (given: Given, operands: readonly string[]) => C,
  run: (config: C) => Promise<number> | Promise<void>,
): Command {
  const made = withFlags(new Command(name).description(about), table);
  return made.action(async () => {
    const logFormat = process.stderr.isTTY ? 'pretty' : 'json';
    const config = read({ logFormat, ...made.opts() }, made.args);
    try {
      const code = await run(config);
      if (code !== undefined) process.exitCode = code;
    } catch (error) {
      const problem = listenProblem(error, (port) => flagOfPort(table, config, port));
      throw problem === undefined ? error : new Error(problem, { cause: error });
    }
  });
}

/** The flag by which a configuration has a port: a table names its values as the configuration does. */
function flagOfPort(table: Table, config: unknown, port: number): string | undefined {
  const [, entry] =
    Object.entries(table).find(
      ([key]) => numberAt(config, key) === port || numberAt(config, key, 'port') === port,
    ) ?? [];
  return entry === undefined || 'flags' in entry ? undefined : longName(entry.flag);
}

/** The flags of a table as options of a command. */
function withFlags(made: Command, table: Table): Command {
  for (const entry of Object.values(table)) {
    if ('flags' in entry) {
      withFlags(made, entry.flags);
      continue;
    }
    if (entry.heading !== undefined) made.optionsGroup(`${entry.heading}:`);
    const option = new Option(entry.flag, entry.about).default(entry.default);
    if (entry.isList === true) option.argParser(inParts());
    made.addOption(entry.choices === undefined ? option : option.choices(entry.choices));
    if (entry.negated !== undefined)
      made.addOption(new Option(longName(entry.flag).replace('--', '--no-'), entry.negated));
  }
  return made;
}

/** Puts the parts of a list together; the first replaces the default. */
function inParts(): (part: string) => string {
  const parts: string[] = [];
  return (part) => {
    parts.push(part);
    return parts.join(',');
  };
}

/** The exit codes of a command that reports findings, as of diff: 1 with findings, 2 on failure. */
function reporting<C>(report: (config: C) => Promise<0 | 1 | 2>): (config: C) => Promise<0 | 1 | 2> {
  return async (config) => {
    try {
      return await report(config);
    } catch (error) {
      process.stderr.write(`servicenet: ${await explanation(error)}\n`);
      return 2;
    }
  };
}

/** An `up` that runs a program has a file of its own. */
function newKubeconfig(words: readonly string[]): string {
  return words.length === 0 ? kubeconfigOfUp() : `${kubeconfigOfUp()}-${randomUUID()}`;
}

/** `addCommand` does not pass settings on: without this, a wrong flag would end the process inside commander. */
function inherit(made: Command, parent: Command): void {
  made.copyInheritedSettings(parent);
  for (const nested of made.commands) inherit(nested, made);
}
