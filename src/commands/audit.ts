import { setTimeout as sleep } from 'node:timers/promises';
import type { AuditConfig } from '../config/audit.ts';
import { auditCluster, type ClusterAudit } from '../controllers/index.ts';
import { maxOf } from '../objects/lists.ts';
import { connectCluster } from './cluster.ts';

/** Milliseconds after which findings are checked again: only findings that last are reported. */
const settle = 5000;

/** Prints what is wrong with the addresses and node ports of a cluster. Returns the exit code: 1 with findings. */
export async function audit({ cluster, nodePorts, output }: AuditConfig): Promise<0 | 1> {
  const transport = await connectCluster(cluster);
  try {
    let result = await auditCluster(transport, nodePorts);
    if (result.findings.length > 0) {
      await sleep(settle);
      const first = new Set(result.findings.map((finding) => JSON.stringify(finding)));
      const again = await auditCluster(transport, nodePorts);
      result = { ...again, findings: again.findings.filter((finding) => first.has(JSON.stringify(finding))) };
    }
    process.stdout.write(output === 'json' ? `${JSON.stringify(result, undefined, 2)}\n` : table(result));
    return result.findings.length === 0 ? 0 : 1;
  } finally {
    await transport.close();
  }
}

const heading = ['KIND', 'OBJECT', 'VALUE', 'REASON', 'MESSAGE'];

function table({ services, addresses, findings }: ClusterAudit): string {
  const looked = `${services} Services${addresses === undefined ? '' : ` and ${addresses} IPAddresses`}`;
  if (findings.length === 0) return `${looked}: no findings\n`;
  const rows = [
    heading,
    ...findings.map(({ kind, key, value, reason, message }) => [kind, key, value, reason, message]),
  ];
  const widths = heading.map((_, column) => maxOf(rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('   ')
      .trimEnd(),
  );
  return `${lines.join('\n')}\n\n${looked}: ${findings.length} findings\n`;
}
