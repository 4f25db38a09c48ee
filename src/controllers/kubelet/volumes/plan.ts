/** The contents of a Pod's volumes (pkg/volume: configmap, secret, downwardapi, projected, empty_dir). */
import { compileLabelSelector, matchesLabels } from '../../../objects/selectors/labels.ts';
import { claimOf } from '../../../objects/pods.ts';
import type { ClusterTrustBundle } from '../../../objects/types/certificates.generated.ts';
import type {
  ClusterTrustBundleProjection,
  DownwardAPIVolumeFile,
  KeyToPath,
  Node,
  Pod,
  PodCertificateProjection,
  ServiceAccountTokenProjection,
  Volume,
  VolumeProjection,
} from '../../../objects/types/core.generated.ts';
import { quantityIn } from '../../../objects/formats/quantity.ts';
import type { VolumeFile, WantedVolume } from '../container-runtime.ts';
import { folderProvisioner } from '../../persistent-volumes/plan.ts';
import { containerNamed, podField, resourceField } from '../plan-environment.ts';
import type { ReferencedObjects } from '../plan-environment.ts';

/** A volume cannot be mounted. The message is the kubelet's, for the Event of the reason. */
export class MountError extends Error {
  override readonly name = 'MountError';
  readonly reason: 'FailedMount' | 'FailedMapVolume';

  constructor(message: string, reason: MountError['reason'] = 'FailedMount') {
    super(message);
    this.reason = reason;
  }
}

/** The kubelet's words for a volume that cannot be set up. */
export function setUpError(volume: string, why: string): MountError {
  return new MountError(`MountVolume.SetUp failed for volume "${volume}" : ${why}`);
}

export interface VolumesInput {
  readonly pod: Pod;
  readonly node: Node;
  readonly objects: ReferencedObjects;
  /** Tokens of the Pod's service account, by {@link tokenKey}. */
  readonly tokens: ReadonlyMap<string, string>;
  /** Certificates of the Pod, by the key of {@link certificatesOf}. Default: none. */
  readonly certificates?: ReadonlyMap<string, PodCertificate>;
}

/** A certificate of a Pod, PEM; or why there is none. */
export type PodCertificate =
  | { readonly key: string; readonly chain: string; readonly problem?: undefined }
  | { readonly problem: string };

const defaultMode = 0o644;

/** All volumes of a Pod. @throws {MountError} of the first one that cannot be. */
export function planVolumes(input: VolumesInput): readonly WantedVolume[] {
  return (input.pod.spec.volumes ?? []).map((volume) => {
    checkMode(input, volume);
    try {
      return planVolume(input, volume);
    } catch (error) {
      if (!(error instanceof MountError)) throw error;
      throw setUpError(volume.name, error.message);
    }
  });
}

/** @throws {MountError} where containers use a claim as what it is not, and for all block devices. */
function checkMode({ pod, objects }: VolumesInput, volume: Volume): void {
  const claim = claimOf(pod, volume);
  const bound = claim === undefined ? undefined : objects.volumeOf?.(claim);
  if (bound === undefined) return;
  const { name } = volume;
  const { volumeMode = 'Filesystem' } = bound;
  const { initContainers = [], containers = [] } = pod.spec;
  const isNamed = (each: { readonly name: string }): boolean => each.name === name;
  const all = [...initContainers, ...containers];
  const isDevice = all.some(({ volumeDevices = [] }) => volumeDevices.some(isNamed));
  const isMounted = all.some(({ volumeMounts = [] }) => volumeMounts.some(isNamed));
  const isBlock = volumeMode === 'Block';
  if (isBlock ? isMounted : isDevice) {
    const why = `volume ${name} has volumeMode ${volumeMode}, but is specified in ${isBlock ? 'volumeMounts' : 'volumeDevices'}`;
    const lists = `unmounted volumes=[${name}], unattached volumes=[], failed to process volumes=[${name}]`;
    throw new MountError(`Unable to attach or mount volumes: ${lists}: ${why}`);
  }
  if (!isDevice) return;
  const why = 'block devices are not simulated: a claim of volumeMode Filesystem can be mounted';
  throw new MountError(`MapVolume.SetUpDevice failed for volume "${name}" : ${why}`, 'FailedMapVolume');
}

function planVolume(input: VolumesInput, volume: Volume): WantedVolume {
  const { name, emptyDir, configMap, secret, downwardAPI, projected, hostPath, image } = volume;
  const claim = claimOf(input.pod, volume);
  if (emptyDir !== undefined) {
    const limit = emptyDir.sizeLimit === undefined ? 0 : Number(quantityIn(emptyDir.sizeLimit, 'units'));
    const isBound = emptyDir.medium === 'Memory' && limit > 0;
    return { name, files: [], ...(isBound ? { sizeLimit: limit } : {}) };
  }
  if (claim !== undefined) {
    const bound = input.objects.volumeOf?.(claim);
    if (bound === undefined) throw new MountError(`PersistentVolumeClaim is not bound: "${claim.name}"`);
    const { csi, hostPath: ofNode, local } = bound;
    const isReadOnly = claim.isReadOnly || csi?.readOnly === true;
    if (csi?.driver === folderProvisioner) return { name, files: [], folder: csi.volumeHandle, isReadOnly };
    const path = ofNode?.path ?? local?.path;
    // `local` is one that is there.
    const hostPathType = ofNode === undefined ? 'Directory' : (ofNode.type ?? '');
    if (path !== undefined) return { name, files: [], hostPath: path, hostPathType, isReadOnly };
    throw new MountError('no volume plugin matched: PersistentVolumes of this kind are not simulated');
  }
  if (hostPath !== undefined) {
    return { name, files: [], hostPath: hostPath.path, hostPathType: hostPath.type ?? '' };
  }
  if (image !== undefined) return { name, files: [], image: image.reference ?? '' };
  if (configMap !== undefined) {
    const { name: of = '', items, optional = false } = configMap;
    return { name, files: filesOfMap(input, of, items, optional, configMap.defaultMode ?? defaultMode) };
  }
  if (secret !== undefined) {
    const { secretName = '', items, optional = false } = secret;
    return {
      name,
      files: filesOfSecret(input, secretName, items, optional, secret.defaultMode ?? defaultMode),
    };
  }
  if (downwardAPI !== undefined) {
    const mode = downwardAPI.defaultMode ?? defaultMode;
    return { name, files: (downwardAPI.items ?? []).map((item) => downwardFile(input, item, mode)) };
  }
  if (projected !== undefined) {
    const mode = projected.defaultMode ?? defaultMode;
    return {
      name,
      files: (projected.sources ?? []).flatMap((source, index) =>
        projection(input, source, mode, certificateKey(name, index)),
      ),
    };
  }
  const [kind = 'unknown'] = Object.keys(volume).filter((member) => member !== 'name');
  throw new MountError(`no volume plugin matched: volumes of kind ${kind} are not simulated`);
}

function projection(
  input: VolumesInput,
  source: VolumeProjection,
  mode: number,
  certificate: string,
): readonly VolumeFile[] {
  const { configMap, secret, downwardAPI, serviceAccountToken: token, clusterTrustBundle: bundle } = source;
  if (configMap !== undefined) {
    return filesOfMap(input, configMap.name ?? '', configMap.items, configMap.optional === true, mode);
  }
  if (secret !== undefined) {
    return filesOfSecret(input, secret.name ?? '', secret.items, secret.optional === true, mode);
  }
  if (downwardAPI !== undefined) {
    return (downwardAPI.items ?? []).map((item) => downwardFile(input, item, mode));
  }
  if (bundle !== undefined) {
    return [{ path: bundle.path, content: Buffer.from(trustAnchors(input.objects, bundle)), mode }];
  }
  if (source.podCertificate !== undefined) {
    return certificateFiles(source.podCertificate, input.certificates?.get(certificate), mode);
  }
  if (token === undefined) {
    throw new MountError(`sources of kind ${Object.keys(source).join()} are not simulated`);
  }
  const content = input.tokens.get(tokenKey(token));
  if (content === undefined) throw new MountError('failed to fetch token');
  return [{ path: token.path, content: Buffer.from(content), mode }];
}

function certificateFiles(
  { credentialBundlePath, keyPath, certificateChainPath }: PodCertificateProjection,
  certificate: PodCertificate = { problem: 'no credentials yet' },
  mode: number,
): readonly VolumeFile[] {
  if (certificate.problem !== undefined) throw new MountError(certificate.problem);
  const { key, chain } = certificate;
  const file = (path: string | undefined, text: string): VolumeFile[] =>
    path === undefined || path === '' ? [] : [{ path, content: Buffer.from(text), mode }];
  return [
    ...file(credentialBundlePath, `${key}${chain}`),
    ...file(keyPath, key),
    ...file(certificateChainPath, chain),
  ];
}

/**
 * The authorities of a bundle by its name, or of the bundles of a signer that a selector names, each once
 * (`pkg/kubelet/clustertrustbundle`). No selector selects nothing, an empty one all.
 */
function trustAnchors(
  objects: ReferencedObjects,
  { name, signerName = '', labelSelector, optional = false }: ClusterTrustBundleProjection,
): string {
  if (name !== undefined) {
    const bundle = objects.trustBundle?.(name);
    if (bundle === undefined && !optional) {
      const why = `clustertrustbundle.certificates.k8s.io ${JSON.stringify(name)} not found`;
      throw new MountError(`while getting ClusterTrustBundle: ${why}`);
    }
    return combined(bundle === undefined ? [] : [bundle]);
  }
  const selector = compileLabelSelector(labelSelector);
  const selected = (objects.trustBundlesOf?.(signerName) ?? []).filter(({ metadata }) =>
    matchesLabels(selector, metadata.labels),
  );
  if (selected.length === 0 && !optional) {
    throw new MountError('combination of signerName and labelSelector matched zero ClusterTrustBundles');
  }
  return combined(selected);
}

const begin = '-----BEGIN CERTIFICATE-----';
const end = '-----END CERTIFICATE-----';
const lineLength = 64;

function combined(bundles: readonly ClusterTrustBundle[]): string {
  const bodies = bundles.flatMap(({ spec }) =>
    spec.trustBundle
      .split(begin)
      .slice(1)
      .map((block) => (block.split(end, 1)[0] ?? '').replaceAll(/\s/g, '')),
  );
  return [...new Set(bodies)]
    .toSorted()
    .map((body) => {
      const lines = Array.from({ length: Math.ceil(body.length / lineLength) }, (_, i) =>
        body.slice(i * lineLength, (i + 1) * lineLength),
      );
      return [begin, ...lines, end, ''].join('\n');
    })
    .join('');
}

/** The trust bundles that the volumes of a Pod need: by name, and by signer. */
export function trustBundlesOf({ spec }: Pod): {
  readonly names: ReadonlySet<string>;
  readonly signers: ReadonlySet<string>;
} {
  const wanted = (spec.volumes ?? []).flatMap(({ projected }) =>
    (projected?.sources ?? []).flatMap(({ clusterTrustBundle }) => clusterTrustBundle ?? []),
  );
  return {
    names: new Set(wanted.flatMap(({ name }) => name ?? [])),
    signers: new Set(
      wanted.flatMap(({ name, signerName }) => (name === undefined ? (signerName ?? []) : [])),
    ),
  };
}

/** Which token a projection is for. */
export function tokenKey({ audience = '', expirationSeconds = 3600 }: ServiceAccountTokenProjection): string {
  return `${expirationSeconds} ${audience}`;
}

/** The tokens in the volumes of a Pod, each with the name of its volume. */
export function tokensOf({
  spec,
}: Pod): readonly { readonly volume: string; readonly wanted: ServiceAccountTokenProjection }[] {
  return (spec.volumes ?? []).flatMap(({ name: volume, projected }) =>
    (projected?.sources ?? []).flatMap(({ serviceAccountToken: wanted }) =>
      wanted === undefined ? [] : [{ volume, wanted }],
    ),
  );
}

/** The certificates in the volumes of a Pod, each by a key of its own. */
export function certificatesOf({
  spec,
}: Pod): readonly { readonly key: string; readonly wanted: PodCertificateProjection }[] {
  return (spec.volumes ?? []).flatMap(({ name, projected }) =>
    (projected?.sources ?? []).flatMap(({ podCertificate: wanted }, index) =>
      wanted === undefined ? [] : [{ key: certificateKey(name, index), wanted }],
    ),
  );
}

/** @param index of a projected volume's source. */
function certificateKey(volume: string, index: number): string {
  return `${volume}/${index}`;
}

function filesOfMap(
  { objects }: VolumesInput,
  name: string,
  items: readonly KeyToPath[] | undefined,
  optional: boolean,
  mode: number,
): readonly VolumeFile[] {
  const map = objects.configMap(name);
  if (map === undefined && !optional) throw new MountError(`configmap "${name}" not found`);
  const data = new Map<string, Buffer>([
    ...Object.entries(map?.data ?? {}).map(([key, text]) => [key, Buffer.from(text)] as const),
    ...Object.entries(map?.binaryData ?? {}).map(
      ([key, text]) => [key, Buffer.from(text, 'base64')] as const,
    ),
  ]);
  return chosen(data, items, optional, mode, `configmap references non-existent config key`);
}

function filesOfSecret(
  { objects }: VolumesInput,
  name: string,
  items: readonly KeyToPath[] | undefined,
  optional: boolean,
  mode: number,
): readonly VolumeFile[] {
  const secret = objects.secret(name);
  if (secret === undefined && !optional) throw new MountError(`secret "${name}" not found`);
  const data = new Map(
    Object.entries(secret?.data ?? {}).map(([key, text]) => [key, Buffer.from(text, 'base64')] as const),
  );
  return chosen(data, items, optional, mode, `references non-existent secret key`);
}

function chosen(
  data: ReadonlyMap<string, Buffer>,
  items: readonly KeyToPath[] | undefined,
  optional: boolean,
  mode: number,
  missing: string,
): readonly VolumeFile[] {
  if (items === undefined || items.length === 0) {
    return [...data].map(([path, content]) => ({ path, content, mode }));
  }
  return items.flatMap(({ key, path, mode: own }) => {
    const content = data.get(key);
    if (content === undefined && !optional) throw new MountError(`${missing}: ${key}`);
    return content === undefined ? [] : [{ path, content, mode: own ?? mode }];
  });
}

function downwardFile(
  { pod, node }: VolumesInput,
  { path, fieldRef, resourceFieldRef, mode: own }: DownwardAPIVolumeFile,
  mode: number,
): VolumeFile {
  const container = containerNamed(pod, resourceFieldRef?.containerName);
  const text =
    fieldRef === undefined
      ? resourceFieldRef === undefined || container === undefined
        ? undefined
        : resourceField(resourceFieldRef, container, node)
      : podField(pod, fieldRef.fieldPath);
  if (text === undefined) throw new MountError(`unsupported downward API file ${path}`);
  return { path, content: Buffer.from(text), mode: own ?? mode };
}

/** The ConfigMaps and Secrets that a Pod refers to, by name. */
export function referencesOf({ spec }: Pod): {
  readonly configMaps: ReadonlySet<string>;
  readonly secrets: ReadonlySet<string>;
} {
  const configMaps = new Set<string>();
  const secrets = new Set<string>();
  const add = (set: Set<string>, name: string | undefined): void => void set.add(name ?? '');
  const sources = (spec.volumes ?? []).flatMap((volume): VolumeProjection[] => [
    { ...(volume.configMap === undefined ? {} : { configMap: volume.configMap }) },
    ...(volume.secret === undefined ? [] : [{ secret: { name: volume.secret.secretName ?? '' } }]),
    ...(volume.projected?.sources ?? []),
  ]);
  for (const { configMap, secret } of sources) {
    if (configMap !== undefined) add(configMaps, configMap.name);
    if (secret !== undefined) add(secrets, secret.name);
  }
  const { initContainers = [], containers = [], ephemeralContainers = [] } = spec;
  for (const { env = [], envFrom = [] } of [...initContainers, ...containers, ...ephemeralContainers]) {
    for (const { configMapRef, secretRef } of envFrom) {
      if (configMapRef !== undefined) add(configMaps, configMapRef.name);
      if (secretRef !== undefined) add(secrets, secretRef.name);
    }
    for (const { valueFrom } of env) {
      if (valueFrom?.configMapKeyRef !== undefined) add(configMaps, valueFrom.configMapKeyRef.name);
      if (valueFrom?.secretKeyRef !== undefined) add(secrets, valueFrom.secretKeyRef.name);
    }
  }
  return { configMaps, secrets };
}
