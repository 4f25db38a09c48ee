import { Connection, type ServerAddress } from './connection.ts';
import { replay, type Failure } from './replay.ts';
import type { Case } from './transcript.ts';

/** How one case went. */
export interface Verdict {
  readonly file: string;
  readonly test: Case;
  readonly failure: Failure | undefined;
}

export interface SuiteOptions {
  /** Cases at a time, of those that keep to their own namespace. Default 12: most of the time is waiting. */
  readonly concurrency?: number;
  /** Run a case that failed beside others once more, alone: another case may have held its port. Default true. */
  readonly retry?: boolean;
  readonly order?: boolean;
  readonly keepNamespaces?: boolean;
  /** Called when a case's verdict is final. */
  readonly onVerdict?: (verdict: Verdict) => void;
}

/**
 * Replays cases of one cluster against one server. Cases that write outside of their own namespace run alone, after
 * the others, as do those that get a second chance.
 */
export async function runSuite(
  cases: readonly { file: string; test: Case }[],
  server: ServerAddress,
  options: SuiteOptions = {},
): Promise<Verdict[]> {
  const connection = new Connection(server);
  const verdicts: Verdict[] = [];
  const alone = cases.filter(({ test }) => needsTheClusterAlone(test));
  const together = cases.filter(({ test }) => !needsTheClusterAlone(test));
  const attempt = async (item: { file: string; test: Case }): Promise<Verdict> => {
    const failure = await replay(item.test, connection, freshNamespace(), options).catch(
      (error: unknown): Failure => ({
        step: 0,
        request: {},
        differences: [{ path: 'case', expected: 'to run', got: String(error) }],
      }),
    );
    return { ...item, failure };
  };
  const settle = (verdict: Verdict): void => {
    verdicts.push(verdict);
    options.onVerdict?.(verdict);
  };
  try {
    let next = 0;
    const worker = async (): Promise<void> => {
      for (let item = together[next++]; item !== undefined; item = together[next++]) {
        const verdict = await attempt(item);
        // A body that did not settle in all its time was not kept from it by another case.
        const again = verdict.failure !== undefined && verdict.failure.request.settle === undefined;
        if (again && options.retry !== false) alone.push(item);
        else settle(verdict);
      }
    };
    await Promise.all(Array.from({ length: options.concurrency ?? 12 }, worker));
    for (const item of alone) settle(await attempt(item));
  } finally {
    await connection.close();
  }
  return verdicts;
}

/**
 * A case that changes what others see: a default IngressClass, the Service CIDRs, the `default` namespace, or nodes
 * where a Service asks for topology hints (which count all nodes). The nodes of all others bear their namespace's
 * name and concern no one else.
 */
function needsTheClusterAlone({ steps }: Case): boolean {
  const topology = steps.some(({ request }) => JSON.stringify(request).includes('kubernetes.io/topology-'));
  return steps.some(({ request }) => {
    const path = request.post ?? request.put ?? request.patch ?? request.delete ?? '';
    return sharedObjects.test(path) || (topology && path.startsWith('/api/v1/nodes'));
  });
}

const sharedObjects = /\/(?:ingressclasses|servicecidrs)(?:\/|$)|\/namespaces\/(?:default|kube-system)/;

let namespaces = 0;

/** Letters and digits in an order that no recorded value has: it is searched for in texts. */
function freshNamespace(): string {
  namespaces++;
  const stamp = Math.floor(performance.timeOrigin).toString(36);
  return `cf${namespaces.toString(36)}x${stamp}`;
}
