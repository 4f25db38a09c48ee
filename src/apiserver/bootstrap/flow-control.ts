import { jsonEqual } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { at } from '../../objects/read.ts';
import {
  mandatoryFlowSchemas,
  suggestedFlowSchemas,
} from '../../registry/flowcontrol/flowschema/bootstrap.ts';
import {
  autoUpdateAnnotation,
  flowcontrolGroup,
  mandatoryPriorityLevels,
  suggestedPriorityLevels,
} from '../../registry/flowcontrol/prioritylevelconfiguration/bootstrap.ts';
import type { ServerCore } from '../rest/server-core.ts';
import { objectKey, PreconditionError } from '../storage/storage.ts';
import { ensureObject } from './system-objects.ts';

interface ObjectWithSpec extends KubeObject {
  readonly spec: object;
}

/** In the order in which kube-apiserver creates them. */
const objects: readonly (readonly [plural: string, list: readonly ObjectWithSpec[]])[] = [
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

async function ensureSpec(core: ServerCore, plural: string, wanted: ObjectWithSpec): Promise<void> {
  const { name = '' } = wanted.metadata;
  const stored = core.storage.getForUpdate(objectKey(flowcontrolGroup, plural, '', name));
  if (stored === undefined) {
    await ensureObject(core, flowcontrolGroup, plural, '', structuredClone(wanted));
    return;
  }
  const { metadata } = stored.object;
  if (metadata.annotations?.[autoUpdateAnnotation] !== 'true') return;
  const storedSpec = at(stored.object, 'spec');
  const spec = withAdministratorsChoice(plural, name, wanted.spec, storedSpec);
  if (jsonEqual(storedSpec, spec)) return;
  const generation = (metadata.generation ?? 0) + 1;
  const object: ObjectWithSpec = { ...stored.object, metadata: { ...metadata, generation }, spec };
  try {
    await core.storage.commit([{ key: stored.key, expect: stored.revision, object }]);
  } catch (error) {
    // Conflict: the next round checks again.
    if (!(error instanceof PreconditionError)) throw error;
  }
}

/** The spec, with the stored `exempt` of the level `exempt`: administrators may choose how much it lends. */
function withAdministratorsChoice(plural: string, name: string, spec: object, storedSpec: unknown): object {
  if (plural !== 'prioritylevelconfigurations' || name !== 'exempt') return spec;
  const exempt = at(storedSpec, 'exempt');
  return exempt === undefined ? spec : { ...spec, exempt };
}
