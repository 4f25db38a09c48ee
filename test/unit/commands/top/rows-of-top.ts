import type { Content } from '../../../../src/commands/top/lists.ts';
import type { Tables } from '../../../../src/view/stored-rows.ts';
import type { RowOfKind } from '../../../../src/view/rows/rows.ts';
import { exampleRows, type ExampleService } from '../../../page/support/example.ts';

/** What the live view shows of rows. */

type Rows = { readonly [Kind in keyof Tables]?: readonly RowOfKind[Kind][] };

export function contentOf(rows: Rows, more: Partial<Content> = {}): Content {
  return {
    tables: {
      ...{ service: stored(rows.service), slice: stored(rows.slice), pod: stored(rows.pod) },
      ...{ workload: stored(rows.workload), node: stored(rows.node), policy: stored(rows.policy) },
      ...{ namespace: stored(rows.namespace), httpRule: stored(rows.httpRule), pool: stored(rows.pool) },
      ...{ address: stored(rows.address), waiting: stored(rows.waiting) },
      ...{ announcer: stored(rows.announcer), egressAddress: stored(rows.egressAddress) },
      ...{ event: stored(rows.event), problem: stored(rows.problem) },
    },
    ...{
      status: { loading: [], forbidden: [] },
      answers: [],
      detailOf: () => undefined,
      answer: undefined,
      flows: undefined,
      ...more,
    },
  };
}

function stored<Row extends { readonly key: string }>(
  rows: readonly Row[] = [],
): ReadonlyMap<string, { readonly row: Row; readonly json: string }> {
  return new Map(rows.map((row) => [row.key, { row, json: JSON.stringify(row) }]));
}

/** Services with their slices and Pods. */
export function servicesOf(...given: readonly ExampleService[]): Required<Pick<Rows, 'service' | 'pod'>> {
  const made = given.map(exampleRows);
  return { service: made.map(({ service }) => service), pod: made.flatMap(({ pods }) => pods) };
}
