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
const clientCaKey = 'client-ca-file';

/**
 * Keeps the ConfigMap in which extension API servers find the CAs of clients and of the front proxy
 * (`pkg/controlplane/controller/clusterauthenticationtrust`). Other client CAs in it are kept.
 *
 * @param clientCa PEM.
 */
export async function ensureAuthenticationConfigMap(
  core: ServerCore,
  clientCa: string,
  frontProxy: FrontProxy,
): Promise<void> {
  const stored = core.storage.getForUpdate(objectKey('', 'configmaps', namespace, name));
  const proxy = requestHeaderMembers(frontProxy);
  if (stored === undefined) {
    const map: ConfigMap = { metadata: { name, namespace }, data: { [clientCaKey]: clientCa, ...proxy } };
    await ensureObject(core, '', 'configmaps', namespace, map);
    return;
  }
  const before = recordAt(stored.object, 'data');
  const storedCas = textAt(before, clientCaKey);
  const data = {
    ...before,
    [clientCaKey]: storedCas.includes(clientCa.trim()) ? storedCas : `${storedCas}${clientCa}`,
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
