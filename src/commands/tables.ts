import { ResourceClient } from '../client/resource-client.ts';
import { services } from '../client/resources.ts';
import type { Transport } from '../client/transport.ts';
import { maxOf } from '../objects/lists.ts';
import type { Service } from '../objects/types/core.generated.ts';
import { externalAddresses, port } from '../view/rows/services.ts';

const heading = ['NAMESPACE', 'NAME', 'TYPE', 'CLUSTER-IP', 'EXTERNAL-IP', 'PORT(S)'];

/** The number of Services that the banner shows. */
const maxRows = 20;

/** The first Services as a table of plain text, columns aligned, and how many more there are. */
export async function serviceTable(client: Transport): Promise<string> {
  const { items, metadata } = await new ResourceClient(client, services).list({ limit: maxRows });
  const more = metadata.remainingItemCount ?? 0;
  const rows = [heading, ...items.map(row)];
  const widths = heading.map((_, column) => maxOf(rows.map((cells) => cells[column]?.length ?? 0)));
  return rows
    .map(
      (cells) =>
        `${cells
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('   ')
          .trimEnd()}\n`,
    )
    .concat(more === 0 ? [] : [`and ${more} more\n`])
    .join('');
}

function row({ metadata, spec, status }: Service): string[] {
  return [
    metadata.namespace ?? '',
    metadata.name ?? '',
    spec.type ?? '',
    (spec.clusterIPs ?? []).join(',') || '<none>',
    externalAddresses(spec, status),
    (spec.ports ?? []).map(port).join(',') || '<none>',
  ];
}

/**
 * Formats rows as lines of plain text with aligned columns.
 *
 * @param widths of columns, at least; they grow.
 */
export function columns(rows: readonly (readonly string[])[], widths: number[] = []): string {
  for (const row of rows) {
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length);
  }
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('   ')
      .trimEnd();
  return rows.map((row) => `${line(row)}\n`).join('');
}
