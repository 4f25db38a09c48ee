import type { ObjectMeta } from '../objects/meta.ts';

/** What an API server calls us, by our User-Agent (apiserver `endpoints/handlers/create.go`, `managerOrUserAgent`). */
export const fieldManager = 'servicenet';

/**
 * Whether the last write of an object was ours. Times are whole seconds: of two writes within one, that of somebody
 * else counts as the last.
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
