import { setTimeout as sleep } from 'node:timers/promises';
import type { AuditConfig } from '../flags/reports.ts';
import { auditCluster, type ClusterAudit } from '../controllers/service-allocation/cluster-audit.ts';
import { auditClusterAttachments } from '../platforms/cni/cluster-audit.ts';
import type { Transport } from '../client/transport.ts';
import { maxOf } from '../objects/lists.ts';
import { connectCluster, reportedCluster } from './connect.ts';

/** Findings are checked again after this time: only those that last are reported. */
const recheckMs = 5000;

/** Prints what is wrong with the addresses and node ports of a cluster. Returns the exit code: 1 with findings. */
export async function audit({ cluster, nodePorts, output }: AuditConfig): Promise<0 | 1> {
  const transport = await connectCluster(await reportedCluster(cluster));
  try {
    const read = (): Promise<WholeAudit> => auditAll(transport, nodePorts);
    let result = await read();
    if (result.findings.length > 0) {
      await sleep(recheckMs);
      const first = new Set(result.findings.map((finding) => JSON.stringify(finding)));
      const again = await read();
      result = { ...again, findings: again.findings.filter((finding) => first.has(JSON.stringify(finding))) };
    }
    process.stdout.write(output === 'json' ? `${JSON.stringify(result, undefined, 2)}\n` : table(result));
    return result.findings.length === 0 ? 0 : 1;
  } finally {
    await transport.close();
  }
}

/** Of Services, and of further networks where there are some. */
interface WholeAudit extends Omit<ClusterAudit, 'findings'> {
  /** Undefined without any. */
  readonly ipPools: number | undefined;
  readonly findings: readonly AuditFinding[];
}

/** The members of all findings. */
type AuditFinding = Readonly<Record<'kind' | 'key' | 'value' | 'reason' | 'message', string>>;

async function auditAll(transport: Transport, nodePorts: AuditConfig['nodePorts']): Promise<WholeAudit> {
  const ofServices = await auditCluster(transport, nodePorts);
  const ofNetworks = await auditClusterAttachments(transport);
  return {
    ...ofServices,
    ipPools: ofNetworks?.pools,
    findings: [...ofServices.findings, ...(ofNetworks?.findings ?? [])],
  };
}

const heading = ['KIND', 'OBJECT', 'VALUE', 'REASON', 'MESSAGE'];

function table({ services, addresses, ipPools, findings }: WholeAudit): string {
  const ofNetworks = ipPools === undefined ? '' : `, ${ipPools} IPPools`;
  const looked = `${services} Services${addresses === undefined ? '' : ` and ${addresses} IPAddresses`}${ofNetworks}`;
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
