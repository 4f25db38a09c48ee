import { hasMetadata, type KubeObject } from '../../objects/meta.ts';
import { isCustomResourceDefinition } from '../../registry/apiextensions/customresourcedefinition/strategy.ts';
import { type ServerCore, timestamp } from '../rest/server-core.ts';
import { objectKey, type StoredObject, type Write } from '../storage/storage.ts';

const prefix = 'gateway.networking.k8s.io';
const bundleVersion = `${prefix}/bundle-version`;
const channel = `${prefix}/channel`;

/** Where the objects of the bundle are stored. */
const resources: ReadonlyMap<string, readonly [group: string, plural: string]> = new Map([
  ['CustomResourceDefinition', ['apiextensions.k8s.io', 'customresourcedefinitions']],
  ['ValidatingAdmissionPolicy', ['admissionregistration.k8s.io', 'validatingadmissionpolicies']],
  ['ValidatingAdmissionPolicyBinding', ['admissionregistration.k8s.io', 'validatingadmissionpolicybindings']],
]);

/**
 * Stores the definitions of Gateway API's standard channel, and the policy that guards them, where they are missing or
 * older. They were validated and established when they were generated (`hack/generate-gateway-crds.ts`): a start has no
 * time for the rules of ten definitions. Newer ones stay; where one of them is of another channel or of none, all stay as
 * they are: who installed it chose what there is.
 */
export async function ensureGatewayApi(core: ServerCore): Promise<void> {
  // Texts: parsed, they would stay in memory at ten times their size.
  const { default: texts } = await import('./gateway-api.generated.json', { with: { type: 'json' } });
  const now = timestamp(core.now());
  const bundled = texts.map((text) => bundledObject(core, text));
  if (bundled.some(isOfOtherChannel)) return;
  const writes = bundled.flatMap((each) => writeOf(core, each, now) ?? []);
  // Whoever deleted the policy, to install what it forbids, does not get it again as long as the definitions are there.
  if (!writes.some(({ object }) => object?.kind === 'CustomResourceDefinition')) return;
  await core.storage.commit(writes);
}

/** An object of the bundle, and what is stored in its place. */
interface Bundled {
  readonly key: string;
  readonly object: KubeObject;
  readonly stored: StoredObject | undefined;
}

function bundledObject(core: ServerCore, text: string): Bundled {
  const object: unknown = JSON.parse(text);
  if (!hasMetadata(object)) throw new TypeError('not an object of Kubernetes');
  const [group, plural] = resources.get(object.kind ?? '') ?? ['', ''];
  const key = objectKey(group, plural, '', object.metadata.name ?? '');
  return { key, object, stored: core.storage.getForUpdate(key) };
}

function isOfOtherChannel({ object, stored }: Bundled): boolean {
  if (stored === undefined) return false;
  return stored.object.metadata.annotations?.[channel] !== object.metadata.annotations?.[channel];
}

/** Stores an object of the bundle; undefined where the stored one stays. */
function writeOf(core: ServerCore, { key, object, stored }: Bundled, now: string): Write | undefined {
  if (stored === undefined) {
    complete(core, object, now);
    return { key, expect: 'absent', object, inOrder: true };
  }
  if (!isOlder(stored.object, object)) return undefined;
  const next = upgraded(stored.object, object);
  if (next === undefined) {
    core.log.warn(
      { key },
      'objects may be stored in a version that the newer definition lacks: the older one stays',
    );
    return undefined;
  }
  return { key, expect: stored.revision, object: next };
}

/** Fills in what each cluster gives a generated object, where there are empty texts, so that its members keep their order. */
function complete(core: ServerCore, object: KubeObject, now: string): void {
  const { metadata } = object;
  metadata.uid = core.newUid();
  metadata.creationTimestamp = now;
  for (const entry of metadata.managedFields ?? []) entry.time = now;
  if (isCustomResourceDefinition(object))
    for (const condition of object.status.conditions ?? []) condition.lastTransitionTime = now;
}

/** True for an object of an older bundle of the same channel. */
function isOlder(stored: KubeObject, { metadata }: KubeObject): boolean {
  const { annotations = {} } = stored.metadata;
  const ours = metadata.annotations ?? {};
  const [before, after] = [annotations[bundleVersion], ours[bundleVersion]].map(numbersOf);
  if (before === undefined || after === undefined) return false;
  const at = before.findIndex((number, i) => number !== after[i]);
  return at >= 0 && (before[at] ?? 0) < (after[at] ?? 0);
}

/** The numbers of `v1.6.3`; undefined for other texts, such as `v1.7.0-rc.1`. */
function numbersOf(version = ''): readonly number[] | undefined {
  const [, ...numbers] = /^v(\d+)\.(\d+)\.(\d+)$/.exec(version) ?? [];
  return numbers.length === 0 ? undefined : numbers.map(Number);
}

/** The stored object with the content of a newer one; undefined where versions in which objects are stored are missing. */
function upgraded(stored: KubeObject, next: KubeObject): KubeObject | undefined {
  const { annotations, ...metadata } = stored.metadata;
  next.metadata = {
    ...metadata,
    annotations: { ...annotations, ...next.metadata.annotations },
    generation: (metadata.generation ?? 0) + 1,
  };
  if (!isCustomResourceDefinition(next) || !isCustomResourceDefinition(stored)) return next;
  const versions = next.spec.versions ?? [];
  const storedVersions = new Set([
    ...(stored.status.storedVersions ?? []),
    ...(next.status.storedVersions ?? []),
  ]);
  if (![...storedVersions].every((name) => versions.some((version) => version.name === name)))
    return undefined;
  next.status = { ...stored.status, storedVersions: [...storedVersions] };
  return next;
}
