import type { Command } from 'commander';
import { Option } from 'commander';
import { logFormats, logLevels } from '../../telemetry/log.ts';
import { explanation } from './explanation.ts';

/** Flags that say which cluster a command connects to. */
export function withCluster(command: Command): Command {
  return command
    .option(
      '--kubeconfig <file>',
      'kubeconfig file (default: $KUBECONFIG, ~/.kube/config, then the service account of the Pod)',
    )
    .option('--context <name>', 'kubeconfig context to use')
    .option('--server <url>', 'URL of the API server, instead of a kubeconfig')
    .option('--token-file <file>', 'file with the bearer token for --server')
    .option('--certificate-authority <file>', 'file with the CA of --server, in PEM format');
}

/** Flags for the Services that the load balancer serves, shared by all commands about pools. */
export function withLoadBalancer(command: Command): Command {
  return command
    .option('--lb-class <class>', 'serve Services of this loadBalancerClass', 'servicenet.dev/load-balancer')
    .option('--default-class', 'also serve Services without a class', true)
    .option('--no-default-class', 'leave Services without a class to another load balancer')
    .option('--compat', 'also read the annotations of MetalLB, kube-vip, PureLB and Cilium', true)
    .option('--no-compat', 'read only the annotations of servicenet.dev');
}

/** Flags that say which networks Pods may name (multus' `namespaceIsolation`, `globalNamespaces`). */
export function withAttachments(command: Command): Command {
  return command
    .option('--namespace-isolation', 'attach Pods only to networks of their own namespace', false)
    .option(
      '--global-namespaces <list>',
      'with --namespace-isolation: namespaces whose networks all Pods may name',
      'default',
    );
}

/** `--allocation`, with what it means for the command. */
export function allocationFlag(description: string): Option {
  return new Option('--allocation <who>', description).choices(['server', 'controller']).default('server');
}

/** `--output` of commands that print a report. */
export function outputFlag(): Option {
  return new Option('-o, --output <format>', 'output format').choices(['table', 'json']).default('table');
}

/** `--log-level`, with its default. */
export function logLevelFlag(level: string): Option {
  return new Option('--log-level <level>', 'lowest level to log').choices(logLevels).default(level);
}

/** `--log-format`. */
export function logFormatFlag(): Option {
  return new Option('--log-format <format>', 'log format (default: pretty on a terminal, else json)').choices(
    logFormats,
  );
}

/** The exit codes of a command that reports findings, as of diff: 1 with findings, 2 on failure. */
export async function exitCodeOf(report: () => Promise<0 | 1 | 2>): Promise<0 | 1 | 2> {
  try {
    return await report();
  } catch (error) {
    process.stderr.write(`servicenet: ${await explanation(error)}\n`);
    return 2;
  }
}
