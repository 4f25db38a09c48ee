import type { ObjectMeta } from '../objects/meta.ts';

/**
 * The field manager that an API server derives from our User-Agent (apiserver `endpoints/handlers/create.go`,
 * `managerOrUserAgent`).
 */
export const fieldManager = 'servicenet';

/**
 * Whether the last write of an object was ours. Times are whole seconds: of two writes within one second, that of
 * another manager counts as the last.
 */
export function isLastWriter({ managedFields = [] }: ObjectMeta): boolean {
  let ours = '';
  let others = '';
  for (const { manager, time = '' } of managedFields) {
    if (manager === fieldManager) ours = time > ours ? time : ours;
    else others = time > others ? time : others;
  }
  return ours > others;
}
