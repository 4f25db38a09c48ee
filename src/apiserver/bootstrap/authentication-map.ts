import type { ConfigMap } from '../../objects/types/core.generated.ts';
import { jsonEqual } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { recordAt, textAt } from '../../objects/read.ts';
import { type FrontProxy, requestHeaderMembers } from '../aggregation/front-proxy.ts';
import type { ServerCore } from '../rest/server-core.ts';
import { objectKey, PreconditionError } from '../storage/storage.ts';
import { ensureObject } from './system-objects.ts';

const namespace = 'kube-system';
const name = 'extension-apiserver-authentication';
const key = 'client-ca-file';

/**
 * Publishes for extension API servers whom to trust: the client CA, and the front proxy that passes requests on to them
 * (`pkg/controlplane` `clusterauthenticationtrust`). Client CAs of others are kept.
 *
 * @param clientCa PEM.
 */
export async function ensureAuthenticationMap(
  core: ServerCore,
  clientCa: string,
  frontProxy: FrontProxy,
): Promise<void> {
  const stored = core.storage.getForUpdate(objectKey('', 'configmaps', namespace, name));
  const proxy = requestHeaderMembers(frontProxy);
  if (stored === undefined) {
    const map: ConfigMap = { metadata: { name, namespace }, data: { [key]: clientCa, ...proxy } };
    await ensureObject(core, '', 'configmaps', namespace, map);
    return;
  }
  const before = recordAt(stored.object, 'data');
  const known = textAt(before, key);
  const data = {
    ...before,
    [key]: known.includes(clientCa.trim()) ? known : `${known}${clientCa}`,
    ...proxy,
  };
  if (jsonEqual(before, data)) return;
  const object: KubeObject & { data: object } = { ...stored.object, data };
  try {
    await core.storage.commit([{ key: stored.key, expect: stored.revision, object }]);
  } catch (error) {
    // Conflict: the next round checks again.
    if (!(error instanceof PreconditionError)) throw error;
  }
}
