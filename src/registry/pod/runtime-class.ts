import type { KubeObject } from '../../objects/meta.ts';
import { forbidden } from '../../objects/status-errors.ts';
import type { PodSpec } from './types.ts';

/**
 * Admission RuntimeClass: a class that a Pod names must exist. There are no classes here.
 *
 * @throws {StatusError} 403
 */
export function admitRuntimeClass({ metadata }: KubeObject, { runtimeClassName }: PodSpec): void {
  if (runtimeClassName === undefined) return;
  const why = `pod rejected: RuntimeClass ${JSON.stringify(runtimeClassName)} not found`;
  throw forbidden({ group: '', resource: 'pods' }, metadata.name ?? '', why);
}
