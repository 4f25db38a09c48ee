/** The identity of a StatefulSet's Pods (pkg/controller/statefulset/stateful_set_utils.go). */
import type { Draft } from '../../../client/resource-client.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import type { ControllerRevision, StatefulSet } from '../../../objects/types/apps.generated.ts';
import type { Pod } from '../../../objects/types/core.generated.ts';
import { templateOf } from '../plan-history.ts';
import { controllerRevisionHash, podFromTemplate } from '../plan-template.ts';

const podNameLabel = 'statefulset.kubernetes.io/pod-name';
const podIndexLabel = 'apps.kubernetes.io/pod-index';

/** `web-2` for the ordinal 2 of the StatefulSet `web`. */
export function podName({ metadata }: StatefulSet, ordinal: number): string {
  return `${metadata.name ?? ''}-${ordinal}`;
}

/** True for Pods with a name of the set: it adopts and keeps no others (`isMemberOf`). */
export function isMember(set: StatefulSet, { metadata }: Pod): boolean {
  return /^(.*)-\d+$/.exec(metadata.name ?? '')?.[1] === set.metadata.name;
}

/** `web-2` of the StatefulSet `web` → 2; undefined for any other name. */
export function ordinalOf(set: StatefulSet, pod: Pod): number | undefined {
  const prefix = `${set.metadata.name ?? ''}-`;
  const name = pod.metadata.name ?? '';
  const rest = name.startsWith(prefix) ? name.slice(prefix.length) : '';
  return /^(?:0|[1-9]\d{0,8})$/.test(rest) ? Number(rest) : undefined;
}

/** The revision that a Pod was made from. */
export function revisionNameOf({ metadata }: Pod): string {
  return metadata.labels?.[controllerRevisionHash] ?? '';
}

/** The Pod of an ordinal: its name, host name and claims are always the same. */
export function draftPod(set: StatefulSet, revision: ControllerRevision, ordinal: number): Draft<Pod> {
  const draft = podFromTemplate(set, templateOf(revision));
  const name = podName(set, ordinal);
  const { serviceName = '' } = set.spec;
  const volumes = claimNames(set).map((volume) => ({
    name: volume,
    persistentVolumeClaim: { claimName: `${volume}-${name}` },
  }));
  const others = (draft.spec?.volumes ?? []).filter(
    (volume) => !volumes.some((own) => own.name === volume.name),
  );
  return {
    metadata: {
      ...draft.metadata,
      name,
      labels: {
        ...draft.metadata.labels,
        [podNameLabel]: name,
        [podIndexLabel]: String(ordinal),
        [controllerRevisionHash]: revision.metadata.name ?? '',
      },
    },
    spec: {
      ...draft.spec,
      hostname: name,
      ...(serviceName === '' ? {} : { subdomain: serviceName }),
      ...(volumes.length === 0 ? {} : { volumes: [...volumes, ...others] }),
    },
  };
}

function claimNames({ spec }: StatefulSet): string[] {
  return (spec.volumeClaimTemplates ?? []).map(({ metadata }) => metadata.name ?? '');
}

/** The PersistentVolumeClaims of an ordinal's Pod. */
export function draftClaims(set: StatefulSet, ordinal: number): KubeObject[] {
  const { namespace = '', name = '' } = set.metadata;
  return (set.spec.volumeClaimTemplates ?? []).map((template) => {
    const { status: _status, ...claim }: KubeObject & { status?: unknown } = template;
    const labels = { ...template.metadata.labels, ...set.spec.selector?.matchLabels };
    const claimName = `${template.metadata.name ?? ''}-${name}-${ordinal}`;
    return { ...claim, metadata: { ...template.metadata, namespace, name: claimName, labels } };
  });
}
