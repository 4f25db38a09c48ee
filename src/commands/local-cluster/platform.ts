import { setTimeout as sleep } from 'node:timers/promises';
import { isNotFound } from '../../client/errors.ts';
import type { Transport } from '../../client/transport.ts';
import type { LocalClusterConfig } from '../../config/local-cluster.ts';
import { applyObjects } from '../apply.ts';

/** Milliseconds between checks whether a kind is served. */
const interval = 20;
/** Milliseconds within which a kind must be served. */
const establishing = 10_000;

/**
 * Defines the kinds of a platform, and waits until they are served: controllers start where they find their kinds. Kinds
 * that another start defined (`--data-dir`) stay.
 *
 * @throws {Error} for a definition that is refused, or not served within ten seconds.
 */
export async function definePlatform(
  client: Transport,
  platform: LocalClusterConfig['platform'],
): Promise<void> {
  if (platform === 'kubernetes') return;
  // Only then, for its memory. hack/generate-definitions.ts writes it from deploy/crds.
  const { default: definitions } = await import('./openshift-definitions.generated.json', {
    with: { type: 'json' },
  });
  await applyObjects(client, definitions);
  const deadline = performance.now() + establishing;
  for (const { spec } of definitions) {
    for (const { name: version } of spec.versions) {
      const path = `/apis/${spec.group}/${version}/${spec.names.plural}?limit=1`;
      for (;;) {
        try {
          await client.request('GET', path);
          break;
        } catch (error) {
          if (!isNotFound(error) || performance.now() > deadline) throw error;
          await sleep(interval);
        }
      }
    }
  }
}
