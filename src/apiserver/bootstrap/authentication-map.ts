import type { ConfigMap } from '../../objects/core.generated.ts';
import { textAt } from '../../objects/read.ts';
import type { ServerCore } from '../rest/server-core.ts';
import { objectKey, PreconditionError } from '../storage/storage.ts';
import { ensureObject } from './system-objects.ts';

const namespace = 'kube-system';
const name = 'extension-apiserver-authentication';
const key = 'client-ca-file';

/**
 * Publishes the client CA for extension API servers (`pkg/controlplane` `clusterauthenticationtrust`). There is no
 * front proxy, so no `requestheader-` keys.
 *
 * @param clientCa PEM.
 */
export async function ensureAuthenticationMap(core: ServerCore, clientCa: string): Promise<void> {
  const stored = core.storage.getForUpdate(objectKey('', 'configmaps', namespace, name));
  if (stored === undefined) {
    const map: ConfigMap = { metadata: { name, namespace }, data: { [key]: clientCa } };
    await ensureObject(core, '', 'configmaps', namespace, map);
    return;
  }
  const known = textAt(stored.object, 'data', key);
  if (known.includes(clientCa.trim())) return;
  const data: unknown = Reflect.get(stored.object, 'data');
  const object: ConfigMap = {
    ...stored.object,
    data: { ...(typeof data === 'object' ? data : {}), [key]: `${known}${clientCa}` },
  };
  try {
    await core.storage.commit([{ key: stored.key, expect: stored.revision, object }]);
  } catch (error) {
    // Another writer was faster: the next round checks again.
    if (!(error instanceof PreconditionError)) throw error;
  }
}
