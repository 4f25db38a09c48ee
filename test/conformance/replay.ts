import { setTimeout as sleep } from 'node:timers/promises';
import { isRecord } from '../../src/objects/json.ts';
import type { Answer, Connection } from './connection.ts';
import { differences, type Difference } from './difference.ts';
import { Masker } from './mask.ts';
import { atPath, resolveText, resolveValue } from './references.ts';
import { settledForm } from './settled.ts';
import type { Case, ClusterName, StepRequest, StepResponse } from './transcript.ts';

/** The Service CIDRs of the four recorded clusters. */
export const serviceRangesOf: Record<ClusterName, readonly string[]> = {
  v4: ['10.96.0.0/16'],
  v6: ['fd00:10:96::/112'],
  dual46: ['10.97.0.0/16', 'fd00:10:97::/112'],
  dual64: ['fd00:10:98::/112', '10.98.0.0/16'],
};

/** Where a case left the recording. */
export interface Failure {
  /** From 0. */
  readonly step: number;
  /** The request of that step, references resolved. */
  readonly request: StepRequest;
  readonly differences: readonly Difference[];
}

export interface ReplayOptions {
  /** The order of members in a body counts too. */
  readonly order?: boolean;
  /** Leaves each case's namespace where it is: deleting one, kind by kind, takes as long as its case. */
  readonly keepNamespaces?: boolean;
}

/** For controllers on a busy machine; the recorded ones took less than ten seconds. */
const settleMs = 30_000;
const settlePollMs = 40;
/** With `pick` or `ignore` there is nothing to wait for, so a body counts as settled when it rested this long. */
const restMs = 1_000;

/** Runs one case in a namespace of its own; undefined when every step was as recorded. */
export async function replay(
  test: Case,
  connection: Connection,
  namespace: string,
  options: ReplayOptions = {},
): Promise<Failure | undefined> {
  const references = new Map<string, unknown>([['ns', namespace]]);
  const masker = new Masker({
    namespace,
    named: JSON.stringify(test.steps.map(({ request }) => request)),
    generated: test.generated,
    serviceRanges: serviceRangesOf[test.cluster],
  });
  await createNamespace(connection, namespace);
  let slept = false;
  try {
    for (const [step, { request: recorded, response }] of test.steps.entries()) {
      const request = resolved(recorded, references);
      const attempt = (): Promise<Outcome> =>
        perform(request, response, connection, masker, options.order ?? false).catch(
          (error: unknown): Outcome => ({
            value: undefined,
            differences: [{ path: 'request', expected: 'an answer', got: String(error) }],
          }),
        );
      slept = request.sleep !== undefined || (slept && request.get !== undefined);
      // The recorder slept until controllers were done: how long that takes is the machine's affair.
      const outcome = slept ? await repeated(attempt) : await attempt();
      if (request.as !== undefined) references.set(request.as, outcome.value);
      if (outcome.differences.length > 0) {
        await removeClusterObjects(test.steps.slice(step + 1), connection, references);
        return { step, request, differences: outcome.differences };
      }
    }
    return undefined;
  } finally {
    await removeNamespace(connection, namespace, options.keepNamespaces ?? false);
  }
}

/** The first outcome without differences, or the last one after the time to settle. */
async function repeated(attempt: () => Promise<Outcome>): Promise<Outcome> {
  const deadline = performance.now() + settleMs;
  for (;;) {
    const outcome = await attempt();
    if (outcome.differences.length === 0 || performance.now() >= deadline) return outcome;
    await sleep(settlePollMs);
  }
}

/** What a step gave: the value that `as` keeps, and where it was not as recorded. */
interface Outcome {
  readonly value: unknown;
  readonly differences: Difference[];
}

async function perform(
  request: StepRequest,
  expected: StepResponse,
  connection: Connection,
  masker: Masker,
  order: boolean,
): Promise<Outcome> {
  if (request.sleep !== undefined) {
    await sleep(request.sleep);
    return { value: undefined, differences: [] };
  }
  if (request.watch !== undefined) {
    const { status, events } = await connection.watch(request.watch, request.headers, {
      milliseconds: request.for ?? 1000,
      count: request.count,
      expected: expected.events?.length ?? 0,
    });
    masker.learn(events);
    const got = { status, events: events.map((event) => masker.mask(bareBookmark(event))) };
    return { value: events, differences: compare(expected, got, order) };
  }
  if (request.settle !== undefined) return settle(request, request.settle, expected, connection, masker);
  const answer = await connection.send(request);
  masker.learn(answer.body);
  return { value: answer.body, differences: compare(expected, kept(answer, request, masker), order) };
}

async function settle(
  request: StepRequest,
  path: string,
  expected: StepResponse,
  connection: Connection,
  masker: Masker,
): Promise<Outcome> {
  const want = { ...expected, ...('body' in expected ? { body: settledForm(expected.body) } : {}) };
  const resting = request.ignore === true || request.pick !== undefined;
  const deadline = performance.now() + settleMs;
  let last = '';
  let since = performance.now();
  for (;;) {
    const answer = await connection.send({
      get: path,
      ...(request.headers ? { headers: request.headers } : {}),
    });
    masker.learn(answer.body);
    // The recorder kept no warnings of the steps that it repeated.
    const { warning: _unrecorded, ...masked } = kept(answer, request, masker);
    const got = { ...masked, ...('body' in masked ? { body: settledForm(masked.body) } : {}) };
    const found = compare(want, got, false);
    const now = performance.now();
    const text = JSON.stringify([answer.body]);
    if (text !== last) since = now;
    last = text;
    const done = resting ? now - since >= restMs : found.length === 0;
    if (done || now >= deadline) return { value: answer.body, differences: found };
    await sleep(settlePollMs);
  }
}

/** The part of an answer that the recorder kept, masked. */
function kept(answer: Answer, request: StepRequest, masker: Masker): StepResponse {
  if (request.ignore === true) return { status: answer.status };
  const response: StepResponse = { status: answer.status };
  if (request.pick !== undefined) response.body = picked(masker.mask(answer.body), request.pick);
  else if (answer.body !== undefined) {
    response.body = masker.mask(answer.body);
    if (typeof answer.body === 'string') response.contentType = answer.contentType;
  }
  if (answer.warning !== undefined) response.warning = masker.text(answer.warning);
  return response;
}

/** A flat object of the paths that exist. */
function picked(body: unknown, paths: readonly string[]): Record<string, unknown> {
  const flat: Record<string, unknown> = {};
  for (const path of paths) {
    const value = atPath(body, path.split('.'));
    if (value !== undefined) flat[path] = value;
  }
  return flat;
}

/** Of a bookmark only the kind and the annotations are compared: when it comes is the server's choice. */
function bareBookmark(event: unknown): unknown {
  if (!isRecord(event) || event['type'] !== 'BOOKMARK' || !isRecord(event['object'])) return event;
  const { kind, apiVersion, metadata } = event['object'];
  const annotations = isRecord(metadata) ? metadata['annotations'] : undefined;
  return {
    ...event,
    object: { kind, apiVersion, metadata: annotations === undefined ? {} : { annotations } },
  };
}

function compare(expected: StepResponse, got: StepResponse, order: boolean): Difference[] {
  const found = differences(expected.status, got.status, 'status');
  for (const part of ['contentType', 'warning', 'body', 'events'] as const) {
    found.push(...differences(expected[part], got[part], part, order));
  }
  return found;
}

function resolved(request: StepRequest, references: ReadonlyMap<string, unknown>): StepRequest {
  const { body, ...rest } = request;
  const texts = Object.fromEntries(
    Object.entries(rest).map(([key, value]) => [
      key,
      typeof value === 'string' && key !== 'as' ? resolveText(value, references) : value,
    ]),
  );
  return { ...texts, ...(body === undefined ? {} : { body: resolveValue(body, references) }) };
}

async function createNamespace(connection: Connection, name: string): Promise<void> {
  const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
  const { status } = await connection.send({ post: '/api/v1/namespaces', body });
  if (status !== 201) throw new Error(`cannot create namespace ${name}: ${status}`);
}

/** What a case that stops early would have deleted outside of its namespace, so that later cases do not meet it. */
async function removeClusterObjects(
  steps: Case['steps'],
  connection: Connection,
  references: ReadonlyMap<string, unknown>,
): Promise<void> {
  for (const { request } of steps) {
    if (request.delete === undefined || request.delete.includes('/namespaces/')) continue;
    await connection.send({ delete: resolveText(request.delete, references) });
  }
}

/** Its Services go first and by name of the collection: their ports must be free for the next case, at once. */
async function removeNamespace(connection: Connection, name: string, keep: boolean): Promise<void> {
  await connection.send({ delete: `/api/v1/namespaces/${name}/services` });
  if (!keep) await connection.send({ delete: `/api/v1/namespaces/${name}` });
}
