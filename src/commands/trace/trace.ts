import { controlSocketPath } from '../../emulation/control-socket.ts';
import type { TraceConfig } from '../../flags/reports.ts';
import { DestinationError } from '../../network/path/destination.ts';
import { reachabilityMatrix } from '../../network/path/matrix.ts';
import type { TraceReport } from '../../network/path/report.ts';
import { readHttpObjects, readTracedCluster } from '../../view/trace-cluster.ts';
import { connectionChecker, traceConnection } from '../../view/trace-connection.ts';
import { kubeconfigOfUp } from '../choices.ts';
import { connectCluster, reportedCluster } from '../connect.ts';
import { enterForPackets } from '../packets.ts';
import { dotPicture, mermaidPicture, svgPicture, treePicture } from '../../view/pictures/tree-of-boxes.ts';
import { boxOf } from '../../view/pictures/way.ts';
import { json, matrixText, reportText } from './text.ts';

/** The socket of the `up` that a kubeconfig is of; by default that of `servicenet run`. */
function socketOf({ cluster }: TraceConfig): string {
  const path = cluster.kind === 'kubeconfig' ? cluster.path : undefined;
  const named = path ?? process.env['KUBECONFIG']?.split(':')[0] ?? '';
  return controlSocketPath(named === '' ? kubeconfigOfUp() : named);
}

/**
 * Prints the way of a connection through a cluster, or which Pods of a namespace reach each other.
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
      const matrix = reachabilityMatrix(cluster.view, namespace, protocol, subject.port);
      process.stdout.write(
        output === 'json' ? json(matrix) : matrixText(matrix, output === 'wide', process.stdout.columns),
      );
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
