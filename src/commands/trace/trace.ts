import { controlSocketPath } from '../../host/control-client.ts';
import type { TraceConfig } from '../../flags/reports.ts';
import { DestinationError } from '../../network/path/destination.ts';
import { type ReachChange, reachPlanSteps } from '../../network/path/reach-plan.ts';
import type { ReachQuestion } from '../../network/path/reach-ends.ts';
import { reachSteps } from '../../network/path/reach.ts';
import type { ClusterView } from '../../network/path/cluster-view.ts';
import type { TraceReport } from '../../network/path/report.ts';
import { runInSlices } from '../../telemetry/time-slice.ts';
import { readHttpObjects, readTracedCluster } from '../../view/trace-cluster.ts';
import { connectionChecker, traceConnection } from '../../view/trace-connection.ts';
import { kubeconfigOfUp } from '../choices.ts';
import { connectCluster, reportedCluster } from '../connect.ts';
import { enterForPackets } from '../packets.ts';
import { dotPicture, mermaidPicture, svgPicture, treePicture } from '../../view/pictures/tree-of-boxes.ts';
import { boxOf } from '../../view/pictures/way.ts';
import { editPolicies } from '../../view/policy-edit.ts';
import { readManifests } from '../apply.ts';
import { json, matrixText, planText, reportText } from './text.ts';

/** The socket of the `up` that a kubeconfig is of; by default that of `servicenet run`. */
function socketOf({ cluster }: TraceConfig): string {
  const path = cluster.kind === 'kubeconfig' ? cluster.path : undefined;
  const named = path ?? process.env['KUBECONFIG']?.split(':')[0] ?? '';
  return controlSocketPath(named === '' ? kubeconfigOfUp() : named);
}

/**
 * Prints the way of a connection through a cluster, or who reaches whom in a namespace.
 *
 * @returns the exit code: 0 reachable, 1 not, 2 when the objects do not decide it; 0 for a matrix.
 */
export async function trace(given: TraceConfig): Promise<0 | 1 | 2> {
  const config = { ...given, cluster: await reportedCluster(given.cluster) };
  const transport = await connectCluster(config.cluster);
  const { subject, namespace, protocol, output } = config;
  try {
    const cluster = await readTracedCluster(transport, config.proxy);
    if (subject.kind === 'matrix') {
      if (!cluster.view.hasNamespace(namespace))
        throw new DestinationError(`there is no namespace ${namespace}`);
      const { port, by, plan } = subject;
      const question = { namespace, protocol, port, by };
      if (plan === undefined) {
        const reach = await runInSlices(reachSteps(cluster.view, question));
        process.stdout.write(output === 'json' ? json(reach) : matrixText(reach, process.stdout.columns));
        return 0;
      }
      const planned = await planPolicies(cluster.view, plan, question);
      process.stdout.write(output === 'json' ? json(planned) : planText(planned));
      return 0;
    }
    const checker = config.check
      ? connectionChecker((place) => enterForPackets(socketOf(config), place))
      : undefined;
    const { source, destination } = subject;
    const { outsideAddresses } = config;
    const report = await traceConnection(
      cluster,
      { source, destination, namespace, protocol, outsideAddresses, checker },
      () => readHttpObjects(transport),
    );
    process.stdout.write(printed(report, source, output));
    return report.reachable === undefined ? 2 : report.reachable ? 0 : 1;
  } finally {
    await transport.close();
  }
}

/** What policies would change. @throws {Error} naming the file whose content is refused. */
async function planPolicies(
  view: ClusterView,
  { files, deleted }: { readonly files: readonly string[]; readonly deleted: readonly string[] },
  question: ReachQuestion,
): Promise<{ readonly changes: readonly ReachChange[]; readonly problems: readonly string[] }> {
  const manifests = await readManifests(files);
  const objects = manifests.flatMap(({ objects: list }) => list);
  const { policies, namespaces, problems } = editPolicies(view, objects, deleted, question.namespace);
  return { changes: await runInSlices(reachPlanSteps(view, policies, namespaces, question)), problems };
}

function printed(report: TraceReport, source: string, output: TraceConfig['output']): string {
  switch (output) {
    case 'json':
      return json(report);
    case 'table':
    case 'wide':
      return reportText(report, output === 'wide');
    case 'tree':
      return treePicture(boxOf(report, source));
    case 'mermaid':
      return mermaidPicture(boxOf(report, source));
    case 'dot':
      return dotPicture(boxOf(report, source));
    case 'svg':
      return svgPicture(boxOf(report, source));
  }
}
