import { writeYaml } from '../apiserver/schema/yaml/write-yaml.ts';
import type { ImportConfig } from '../config/import.ts';
import { readImport } from '../pools/import/read.ts';
import { connectCluster } from './cluster.ts';

/**
 * Prints another load balancer's pools and routers as AddressPools and BGPPeers in YAML, ready for `kubectl apply -f -`. What could not be
 * converted is listed in comments above them, and on standard error.
 *
 * @throws {Error} when the cluster has no such pools.
 */
export async function importPools({ cluster, source, configMap }: ImportConfig): Promise<void> {
  const transport = await connectCluster(cluster);
  try {
    const { pools, peers, notes } = await readImport(transport, source, configMap);
    for (const note of notes) process.stderr.write(`${note}\n`);
    const comments = notes.map((note) => `# ${note.replaceAll(/\s+/g, ' ')}\n`).join('');
    process.stdout.write(comments + [...pools, ...peers].map(writeYaml).join('---\n'));
  } finally {
    await transport.close();
  }
}
