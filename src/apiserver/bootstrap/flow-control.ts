import { jsonEqual } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import {
  mandatoryFlowSchemas,
  suggestedFlowSchemas,
} from '../../registry/flowcontrol/flowschema/bootstrap.ts';
import {
  mandatoryPriorityLevels,
  suggestedPriorityLevels,
} from '../../registry/flowcontrol/prioritylevelconfiguration/bootstrap.ts';
import type { ServerCore } from '../rest/server-core.ts';
import { objectKey, PreconditionError } from '../storage/storage.ts';
import { ensureObject } from './system-objects.ts';
import {
  autoUpdateAnnotation,
  flowcontrolGroup,
} from '../../registry/flowcontrol/prioritylevelconfiguration/bootstrap.ts';

interface Specified extends KubeObject {
  readonly spec: object;
}

/** In the order in which kube-apiserver makes them. */
const objects: readonly (readonly [plural: string, list: readonly Specified[]])[] = [
  ['flowschemas', suggestedFlowSchemas],
  ['prioritylevelconfigurations', suggestedPriorityLevels],
  ['flowschemas', mandatoryFlowSchemas],
  ['prioritylevelconfigurations', mandatoryPriorityLevels],
];

/**
 * Creates the FlowSchemas and PriorityLevelConfigurations of every cluster, and restores their specs where the
 * annotation allows it (`pkg/registry/flowcontrol/ensurer`).
 */
export async function ensureFlowControl(core: ServerCore): Promise<void> {
  await Promise.all(
    objects.flatMap(([plural, list]) => list.map(async (object) => ensureSpec(core, plural, object))),
  );
}

async function ensureSpec(core: ServerCore, plural: string, wanted: Specified): Promise<void> {
  const { name = '' } = wanted.metadata;
  const stored = core.storage.getForUpdate(objectKey(flowcontrolGroup, plural, '', name));
  if (stored === undefined) {
    await ensureObject(core, flowcontrolGroup, plural, '', structuredClone(wanted));
    return;
  }
  const { metadata } = stored.object;
  if (metadata.annotations?.[autoUpdateAnnotation] !== 'true') return;
  const present: unknown = Reflect.get(stored.object, 'spec');
  const spec = freed(plural, name, wanted.spec, present);
  if (jsonEqual(present, spec)) return;
  const generation = (metadata.generation ?? 0) + 1;
  const object: Specified = { ...stored.object, metadata: { ...metadata, generation }, spec };
  try {
    await core.storage.commit([{ key: stored.key, expect: stored.revision, object }]);
  } catch (error) {
    // Conflict: the next round checks again.
    if (!(error instanceof PreconditionError)) throw error;
  }
}

/** The spec with what administrators may choose: how much the level `exempt` lends. */
function freed(plural: string, name: string, spec: object, present: unknown): object {
  if (plural !== 'prioritylevelconfigurations' || name !== 'exempt') return spec;
  const exempt: unknown =
    typeof present === 'object' && present !== null ? Reflect.get(present, 'exempt') : undefined;
  return exempt === undefined ? spec : { ...spec, exempt };
}
