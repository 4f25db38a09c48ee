import { Command } from 'commander';
import { version } from '../../telemetry/version.ts';
import { controllerCommand } from './controller.ts';
import { dnsCommand, nodeCommand, routerCommand } from './node.ts';
import { importCommand, poolsCommand } from './pools.ts';
import { auditCommand, topCommand, traceCommand } from './reports.ts';
import { runCommand, upCommand } from './up.ts';

/** The command line. Commands are loaded when they are called, so that `--help` is fast. */
export function program(): Command {
  const root = new Command('servicenet')
    .description(
      'Kubernetes Service networking: an API server for tests, and a load balancer controller for any cluster',
    )
    .version(version(), '-V, --version')
    .showHelpAfterError('(run with --help for usage)')
    .exitOverride()
    // An option after a subcommand belongs to it, even if its parent has it too (pools, pools plan).
    .enablePositionalOptions();
  const commands = [
    upCommand(),
    controllerCommand(),
    nodeCommand(),
    dnsCommand(),
    routerCommand(),
    auditCommand(),
    topCommand(),
    runCommand(),
    traceCommand(),
    poolsCommand(),
    importCommand(),
  ];
  for (const command of commands) {
    root.addCommand(command);
    inherit(command, root);
  }
  root
    .command('version')
    .description('print the version')
    .action(() => {
      process.stdout.write(`servicenet ${version()} (API of Kubernetes 1.36, Node.js ${process.version})\n`);
    });
  return root;
}

/** `addCommand` does not pass settings on: without this, a wrong flag would end the process inside commander. */
function inherit(command: Command, parent: Command): void {
  command.copyInheritedSettings(parent);
  for (const nested of command.commands) inherit(nested, command);
}
