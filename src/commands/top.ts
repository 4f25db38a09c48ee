import type { TopConfig } from '../config/top.ts';
import { createLog } from '../telemetry/log.ts';
import { connectCluster } from './cluster.ts';
import { untilSignal } from './signals.ts';
import { showLiveView } from './top/live-view.ts';

/** Shows a cluster's Services, pools and Events as they change, until a signal comes. */
export async function top({ cluster, namespace }: TopConfig): Promise<void> {
  const log = createLog({ level: 'error', format: process.stderr.isTTY ? 'pretty' : 'json' });
  const stop = untilSignal(log);
  const transport = await connectCluster(cluster);
  const ending = new AbortController();
  void stop.received.then(() => ending.abort());
  try {
    const title = `servicenet top: ${transport.server}  (q ends it)`;
    await showLiveView({ transport, log, namespace, title }, ending.signal);
  } finally {
    await transport.close();
    stop.release();
  }
}
