import { isRecord, jsonEqual, type JsonRecord, listAt, textAt } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { renewedWithinMs } from '../../network/path/entry.ts';

/** Members of metadata that change with each write. */
const written: ReadonlySet<string> = new Set(['resourceVersion', 'generation', 'managedFields']);

/**
 * Where two states of an object differ, as paths of two names at most: `spec.selector`, `metadata.labels`, `endpoints`. A
 * write that only says that a node or an agent is alive changes nothing: these come every few seconds.
 */
export function modifiedFields(before: KubeObject, after: KubeObject): readonly string[] {
  const fields: string[] = [];
  for (const name of namesOf(before, after)) {
    const was: unknown = Reflect.get(before, name);
    const is: unknown = Reflect.get(after, name);
    if (was === is) continue;
    if (name !== 'metadata' && name !== 'spec' && name !== 'status') {
      if (!jsonEqual(was, is)) fields.push(name);
      continue;
    }
    const [parts, others] = [isRecord(was) ? was : {}, isRecord(is) ? is : {}];
    for (const part of namesOf(parts, others)) {
      const isKept = name !== 'metadata' || !written.has(part);
      if (isKept && !isSame(`${name}.${part}`, parts[part], others[part])) fields.push(`${name}.${part}`);
    }
  }
  return fields;
}

function namesOf(before: object, after: object): ReadonlySet<string> {
  return new Set([...Object.keys(before), ...Object.keys(after)]);
}

function isSame(path: string, was: unknown, is: unknown): boolean {
  if (was === is || jsonEqual(was, is)) return true;
  if (path === 'spec.renewTime' && typeof was === 'string' && typeof is === 'string') {
    // Renewed in time: it was alive between.
    return Date.parse(is) - Date.parse(was) <= renewedWithinMs;
  }
  if (path !== 'status.conditions' || !Array.isArray(was) || !Array.isArray(is)) return false;
  return jsonEqual(was.map(withoutHeartbeat), is.map(withoutHeartbeat));
}

function withoutHeartbeat(condition: unknown): unknown {
  if (!isRecord(condition)) return condition;
  const { lastHeartbeatTime: _, ...rest }: JsonRecord = condition;
  return rest;
}

/** What a change was, in few words: `ready`, `not ready`, `ready endpoints 2 → 1`, or the fields. */
export function modification(before: KubeObject, after: KubeObject, fields: readonly string[]): string {
  const words = [...wordsOfPod(before, after), ...wordsOfSlice(before, after)];
  return words.length > 0 ? words.join(', ') : fields.join(', ');
}

function wordsOfPod(before: KubeObject, after: KubeObject): readonly string[] {
  if (after.kind !== 'Pod') return [];
  const [was, is] = [readinessOf(before), readinessOf(after)];
  const [phaseBefore, phase] = [textAt(before, 'status', 'phase'), textAt(after, 'status', 'phase')];
  const isEnding =
    before.metadata.deletionTimestamp === undefined && after.metadata.deletionTimestamp !== undefined;
  return [
    ...(isEnding ? ['is ending'] : []),
    ...(phase !== phaseBefore && phase !== '' ? [phase] : []),
    ...(is !== was && is !== undefined ? [is] : []),
  ];
}

function readinessOf(pod: KubeObject): 'ready' | 'not ready' | undefined {
  const condition = listAt(pod, 'status', 'conditions').find((each) => textAt(each, 'type') === 'Ready');
  return condition === undefined ? undefined : textAt(condition, 'status') === 'True' ? 'ready' : 'not ready';
}

function wordsOfSlice(before: KubeObject, after: KubeObject): readonly string[] {
  if (after.kind !== 'EndpointSlice') return [];
  const [was, is] = [readyEndpoints(before), readyEndpoints(after)];
  return was === is ? [] : [`ready endpoints ${was} → ${is}`];
}

function readyEndpoints(slice: KubeObject): number {
  return listAt(slice, 'endpoints').filter((endpoint) => {
    const conditions = isRecord(endpoint) ? endpoint['conditions'] : undefined;
    return !isRecord(conditions) || conditions['ready'] !== false;
  }).length;
}
