import { compileLabelSelector, matchesLabels } from '../../objects/selectors/labels.ts';
import type { Draft } from '../../client/resource-client.ts';
import { compareQuantities } from '../../objects/formats/quantity.ts';
import { classOf, defaultStorageClass } from '../../objects/storage-classes.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../objects/types/core.generated.ts';
import type { StorageClass } from '../../objects/types/storage.generated.ts';

/** The provisioner of `up`: its volumes are folders of the cluster network. */
export const folderProvisioner = 'folders.servicenet.dev';

export const annotations = {
  bindCompleted: 'pv.kubernetes.io/bind-completed',
  boundByController: 'pv.kubernetes.io/bound-by-controller',
  provisionedBy: 'pv.kubernetes.io/provisioned-by',
  selectedNode: 'volume.kubernetes.io/selected-node',
  provisioner: 'volume.kubernetes.io/storage-provisioner',
  betaProvisioner: 'volume.beta.kubernetes.io/storage-provisioner',
} as const;

/** What is to be done for a claim. An Event says for what it waits, or why it is lost. */
export type ClaimPlan =
  | { readonly kind: 'bind'; readonly volume: PersistentVolume; readonly event?: ClaimEvent }
  | { readonly kind: 'provision'; readonly volume: Draft<PersistentVolume> }
  /** It asks for more than it has, of a folder: that has no size. */
  | { readonly kind: 'resize'; readonly volume: PersistentVolume; readonly storage: string }
  /** It gets the default class (`assignDefaultStorageClass`). */
  | { readonly kind: 'classify'; readonly storageClassName: string }
  | { readonly kind: 'wait'; readonly event?: ClaimEvent; readonly provisioner?: string }
  | { readonly kind: 'lost'; readonly event: ClaimEvent };

export interface ClaimEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason:
    | 'ClaimLost'
    | 'ClaimMisbound'
    | 'ExternalExpanding'
    | 'ExternalProvisioning'
    | 'FailedBinding'
    | 'ProvisioningFailed'
    | 'VolumeMismatch'
    | 'WaitForFirstConsumer'
    | 'WaitForPodScheduled';
  readonly message: string;
}

/** The provisioner of classes whose volumes are made by hand. */
const noProvisioner = 'kubernetes.io/no-provisioner';

/** True once a claim has its volume, and stays with it. */
export function isBindCompleted({ metadata }: PersistentVolumeClaim): boolean {
  return metadata.annotations?.[annotations.bindCompleted] !== undefined;
}

/** True where a volume is reserved for this claim, whether that exists yet or not (`IsVolumeBoundToClaim`). */
function isFor({ spec: { claimRef } }: PersistentVolume, { metadata }: PersistentVolumeClaim): boolean {
  if (claimRef?.name !== metadata.name || claimRef?.namespace !== metadata.namespace) return false;
  return (claimRef?.uid ?? '') === '' || claimRef?.uid === metadata.uid;
}

/** True where a claim is bound only when a Pod with it has a node. */
export function waitsForConsumer(storageClass: StorageClass | undefined): boolean {
  return storageClass?.volumeBindingMode === 'WaitForFirstConsumer';
}

/** True where someone makes the volumes of a class. */
export function isProvisioned(storageClass: StorageClass | undefined): boolean {
  return storageClass !== undefined && storageClass.provisioner !== noProvisioner;
}

/**
 * Finds or makes the volume of a claim (pkg/controller/volume/persistentvolume/pv_controller.go `syncClaim`).
 *
 * @param classes all that there are.
 * @param unplaced gives the names of Pods that use it and for which the scheduler found no node.
 */
export function planClaim(
  claim: PersistentVolumeClaim,
  volumes: readonly PersistentVolume[],
  classes: readonly StorageClass[],
  unplaced: () => readonly string[] = () => [],
): ClaimPlan {
  const { volumeName = '' } = claim.spec;
  const volume = volumes.find(({ metadata }) => metadata.name === volumeName);
  if (isBindCompleted(claim)) return planBoundClaim(claim, volume);
  if (volumeName !== '') return planNamedVolume(claim, volume);

  const storageClass = classes.find(({ metadata }) => metadata.name === classOf(claim));
  const waits =
    waitsForConsumer(storageClass) && claim.metadata.annotations?.[annotations.selectedNode] === undefined;
  const found = matchingVolume(claim, volumes, { onlyReserved: waits });
  if (found !== undefined) return { kind: 'bind', volume: found };
  if (claim.spec.storageClassName === undefined && classOf(claim) === '') {
    const storageClassName = defaultStorageClass(classes);
    if (storageClassName !== undefined) return { kind: 'classify', storageClassName };
  }
  if (waits) return { kind: 'wait', event: { type: 'Normal', ...awaited(unplaced()) } };
  return planProvisioning(claim, storageClass);
}

/** What a claim of a class that waits for its consumers waits for (`emitEventForUnboundDelayBindingClaim`). */
function awaited(unplaced: readonly string[]): Pick<ClaimEvent, 'reason' | 'message'> {
  if (unplaced.length === 0) {
    const message = 'waiting for first consumer to be created before binding';
    return { reason: 'WaitForFirstConsumer', message };
  }
  const pods = `pod${unplaced.length === 1 ? '' : 's'} ${unplaced.join(',')}`;
  return { reason: 'WaitForPodScheduled', message: `waiting for ${pods} to be scheduled` };
}

function planBoundClaim(claim: PersistentVolumeClaim, volume: PersistentVolume | undefined): ClaimPlan {
  const lost = (reason: 'ClaimLost' | 'ClaimMisbound', message: string): ClaimPlan => ({
    kind: 'lost',
    event: { type: 'Warning', reason, message },
  });
  if ((claim.spec.volumeName ?? '') === '') {
    return lost(
      'ClaimLost',
      'Bound claim has lost reference to PersistentVolume. Data on the volume is lost!',
    );
  }
  if (volume === undefined) {
    return lost('ClaimLost', 'Bound claim has lost its PersistentVolume. Data on the volume is lost!');
  }
  if (volume.spec.claimRef === undefined || isFor(volume, claim)) {
    const storage = requestOf(claim);
    const { status } = claim;
    const isMore = compareQuantities(storage, status.capacity?.['storage'] ?? '0') > 0;
    if (status.phase !== 'Bound' || !isMore) return { kind: 'bind', volume };
    if (volume.metadata.annotations?.[annotations.provisionedBy] === folderProvisioner) {
      return { kind: 'resize', volume, storage };
    }
    // pkg/controller/volume/expand
    const message = 'waiting for an external controller to expand this PVC';
    return { kind: 'bind', volume, event: { type: 'Normal', reason: 'ExternalExpanding', message } };
  }
  const message = 'Two claims are bound to the same volume, this one is bound incorrectly';
  return lost('ClaimMisbound', message);
}

/** A claim whose user has chosen the volume. */
function planNamedVolume(claim: PersistentVolumeClaim, volume: PersistentVolume | undefined): ClaimPlan {
  if (volume === undefined) return { kind: 'wait' };
  const name = volume.metadata.name ?? '';
  if (isFor(volume, claim)) return { kind: 'bind', volume };
  if (volume.spec.claimRef !== undefined) {
    const message = `volume "${name}" already bound to a different claim.`;
    return { kind: 'wait', event: { type: 'Warning', reason: 'FailedBinding', message } };
  }
  const mismatch = mismatchOf(claim, volume);
  if (mismatch === undefined) return { kind: 'bind', volume };
  const message = `Cannot bind to requested volume "${name}": ${mismatch}`;
  return { kind: 'wait', event: { type: 'Warning', reason: 'VolumeMismatch', message } };
}

/** Why a volume is none for a claim that names it (`checkVolumeSatisfyClaim`). */
function mismatchOf(claim: PersistentVolumeClaim, volume: PersistentVolume): string | undefined {
  if (compareQuantities(sizeOf(volume), requestOf(claim)) < 0) return 'requested PV is too small';
  if (classOf(volume) !== classOf(claim)) return 'storageClassName does not match';
  if (modeOf(volume) !== modeOf(claim)) return 'incompatible volumeMode';
  return hasAccess(volume, claim) ? undefined : 'incompatible accessMode';
}

function planProvisioning(claim: PersistentVolumeClaim, storageClass: StorageClass | undefined): ClaimPlan {
  const wait = (type: ClaimEvent['type'], reason: ClaimEvent['reason'], message: string): ClaimPlan => ({
    kind: 'wait',
    event: { type, reason, message },
  });
  const name = classOf(claim);
  if (name === '') {
    const message = 'no persistent volumes available for this claim and no storage class is set';
    return wait('Normal', 'FailedBinding', message);
  }
  if (storageClass === undefined) {
    return wait('Warning', 'ProvisioningFailed', `storageclass.storage.k8s.io "${name}" not found`);
  }
  const { provisioner } = storageClass;
  if (provisioner.startsWith('kubernetes.io/')) {
    return wait('Warning', 'ProvisioningFailed', `no volume plugin matched name: ${provisioner}`);
  }
  if (provisioner === folderProvisioner) {
    const obstacle = noFolderFor(claim);
    if (obstacle === undefined) return { kind: 'provision', volume: draftVolume(claim, storageClass) };
    const message = `failed to provision volume with StorageClass "${name}": ${obstacle}`;
    return wait('Warning', 'ProvisioningFailed', message);
  }
  const message = `Waiting for a volume to be created either by the external provisioner '${provisioner}' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.`;
  return {
    kind: 'wait',
    event: { type: 'Normal', reason: 'ExternalProvisioning', message },
    provisioner,
  };
}

/** Why no volume is made for a claim of a class of ours; undefined: one is, or others make it. */
export function unprovisionable(
  claim: PersistentVolumeClaim,
  storageClass: StorageClass | undefined,
): string | undefined {
  return storageClass?.provisioner === folderProvisioner ? noFolderFor(claim) : undefined;
}

function noFolderFor({ spec }: PersistentVolumeClaim): string | undefined {
  if (spec.selector !== undefined) return 'claim Selector is not supported';
  if (spec.volumeMode === 'Block') return 'volumes of this class are folders, not block devices';
  const isCopy = spec.dataSource !== undefined || spec.dataSourceRef !== undefined;
  return isCopy ? 'volumes of this class begin empty: data sources are not simulated' : undefined;
}

/** Which volumes may be matched. */
interface Matching {
  /** None but those that name the claim. */
  readonly onlyReserved?: boolean;
  /** Whether the volume can be used where the claim is needed; default: it can. */
  readonly isReachable?: (volume: PersistentVolume) => boolean;
}

/** The volume that is reserved for a claim, else the smallest that fits (`pkg/volume/util` FindMatchingVolume). */
export function matchingVolume(
  claim: PersistentVolumeClaim,
  volumes: readonly PersistentVolume[],
  { onlyReserved = false, isReachable = () => true }: Matching,
): PersistentVolume | undefined {
  // Most volumes are another claim's: sizes are compared last.
  const possible = volumes.filter(
    (volume) =>
      (volume.spec.claimRef === undefined || isFor(volume, claim)) &&
      volume.metadata.deletionTimestamp === undefined &&
      modeOf(volume) === modeOf(claim) &&
      hasAccess(volume, claim) &&
      compareQuantities(sizeOf(volume), requestOf(claim)) >= 0,
  );
  const reserved = possible.find((volume) => isFor(volume, claim));
  if (reserved !== undefined) return isReachable(reserved) ? reserved : undefined;
  if (onlyReserved) return undefined;
  const { selector } = claim.spec;
  const compiled = selector === undefined ? undefined : compileLabelSelector(selector);
  return possible
    .filter(
      (volume) =>
        volume.spec.claimRef === undefined &&
        volume.status.phase === 'Available' &&
        classOf(volume) === classOf(claim) &&
        (compiled === undefined || matchesLabels(compiled, volume.metadata.labels)) &&
        isReachable(volume),
    )
    .sort(
      (a, b) =>
        compareQuantities(sizeOf(a), sizeOf(b)) ||
        ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1),
    )[0];
}

function sizeOf({ spec }: PersistentVolume): string {
  return spec.capacity?.['storage'] ?? '0';
}

function requestOf({ spec }: PersistentVolumeClaim): string {
  return spec.resources?.requests?.['storage'] ?? '0';
}

function modeOf({ spec }: PersistentVolume | PersistentVolumeClaim): string {
  return spec.volumeMode ?? 'Filesystem';
}

function hasAccess(volume: PersistentVolume, { spec }: PersistentVolumeClaim): boolean {
  return (spec.accessModes ?? []).every((mode) => (volume.spec.accessModes ?? []).includes(mode));
}

/** A folder for a claim, which has its name from it, so that a repeated attempt makes no second one. */
function draftVolume(claim: PersistentVolumeClaim, storageClass: StorageClass): Draft<PersistentVolume> {
  const name = `pvc-${claim.metadata.uid ?? ''}`;
  return {
    metadata: { name, annotations: { [annotations.provisionedBy]: folderProvisioner } },
    spec: {
      capacity: { storage: requestOf(claim) },
      accessModes: claim.spec.accessModes ?? [],
      volumeMode: modeOf(claim),
      persistentVolumeReclaimPolicy: storageClass.reclaimPolicy ?? 'Delete',
      storageClassName: storageClass.metadata.name ?? '',
      mountOptions: storageClass.mountOptions ?? [],
      claimRef: referenceTo(claim),
      csi: { driver: folderProvisioner, volumeHandle: name },
    },
  };
}

/**
 * True where a claim and a volume name each other. Until then, no Pod has the volume: the author of a claim chooses the name
 * in it.
 */
export function areBound(claim: PersistentVolumeClaim, volume: PersistentVolume): boolean {
  const isNamed = claim.spec.volumeName === volume.metadata.name;
  return isNamed && isBindCompleted(claim) && volume.spec.claimRef?.uid === claim.metadata.uid;
}

/** What a bound volume says of its claim. */
function referenceTo({ metadata }: PersistentVolumeClaim): NonNullable<PersistentVolume['spec']['claimRef']> {
  const { namespace = '', name = '', uid = '', resourceVersion = '' } = metadata;
  return { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid, resourceVersion };
}

/** A JSON merge patch. */
type Patch = Readonly<Record<string, unknown>>;

/** The patch that gives a volume to a claim, unless another took it meanwhile; undefined: it has it. */
export function reservationOf(
  { metadata, spec }: PersistentVolume,
  claim: PersistentVolumeClaim,
): Patch | undefined {
  const { claimRef } = spec;
  if ((claimRef?.uid ?? '') !== '') return undefined;
  const byUs = claimRef === undefined ? { [annotations.boundByController]: 'yes' } : {};
  return {
    metadata: { resourceVersion: metadata.resourceVersion, annotations: byUs },
    spec: { claimRef: referenceTo(claim) },
  };
}

/** What becomes of a volume: a phase, with an Event and message where it fails. */
export type VolumePlan =
  | { readonly phase: 'Available' | 'Bound' | 'Released' }
  | {
      readonly phase: 'Failed';
      readonly reason: 'VolumeFailedDelete' | 'VolumeFailedRecycle';
      readonly message: string;
    }
  | 'delete'
  /** Its claim has another volume. */
  | 'unbind';

/**
 * The phase of a volume (`syncVolume`, `reclaimVolume`).
 *
 * @param claim that {@link PersistentVolume.spec.claimRef} names, if it is there.
 * @returns undefined: as it is, its claim is being bound.
 */
export function planVolume(
  volume: PersistentVolume,
  claim: PersistentVolumeClaim | undefined,
): VolumePlan | undefined {
  const { metadata, spec, status } = volume;
  if (spec.claimRef === undefined || (spec.claimRef.uid ?? '') === '') return { phase: 'Available' };
  const provisioner = metadata.annotations?.[annotations.provisionedBy];
  const policy = spec.persistentVolumeReclaimPolicy ?? 'Retain';
  if (claim !== undefined && claim.metadata.uid === spec.claimRef.uid) {
    const { volumeName = '' } = claim.spec;
    if (volumeName === metadata.name) return { phase: 'Bound' };
    if (volumeName === '') return undefined;
    if (provisioner === undefined || policy !== 'Delete') return 'unbind';
  }
  if (status.phase !== 'Released' && status.phase !== 'Failed') return { phase: 'Released' };
  if (policy === 'Retain' || status.phase === 'Failed') return undefined;
  if (policy === 'Delete' && provisioner !== undefined) {
    // Another provisioner deletes what it made.
    return provisioner === folderProvisioner ? 'delete' : undefined;
  }
  const name = metadata.name ?? '';
  return policy === 'Recycle'
    ? { phase: 'Failed', reason: 'VolumeFailedRecycle', message: 'No recycler plugin found for the volume!' }
    : {
        ...{ phase: 'Failed', reason: 'VolumeFailedDelete' },
        message: `error getting deleter volume plugin for volume "${name}": no deletable volume plugin matched`,
      };
}

/** The patch that takes a volume from a claim (`unbindVolume`): one that its user reserved stays reserved. */
export function releaseOf({ metadata }: PersistentVolume): Patch {
  const isOurs = metadata.annotations?.[annotations.boundByController] !== undefined;
  return {
    metadata: {
      resourceVersion: metadata.resourceVersion,
      annotations: { [annotations.boundByController]: null },
    },
    spec: { claimRef: isOurs ? null : { uid: null, resourceVersion: null } },
  };
}
