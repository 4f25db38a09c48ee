import { isNotFound } from '../../../client/errors.ts';
import type { ResourceClient } from '../../../client/resource-client.ts';
import { podCertificateRequests, serviceAccounts } from '../../../client/resources.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import type { EventReason } from '../../../objects/reasons.ts';
import { errorMessage } from '../../../objects/status.ts';
import { parseTime } from '../../../objects/formats/time.ts';
import type { PodCertificateRequest } from '../../../objects/types/certificates.generated.ts';
import type { Node, Pod, PodCertificateProjection } from '../../../objects/types/core.generated.ts';
import type { ControllerContext } from '../../../runtime/context.ts';
import { pem } from '../../../tls/certificates.ts';
import { createStubRequest } from '../../../tls/stub-request.ts';
import { pemBlocks } from '../../../tls/x509.ts';
import { certificatesOf, type PodCertificate } from './plan.ts';

/** A certificate is renewed up to so many milliseconds after its time, at random: not those of all Pods at once. */
const maxRefreshDelayMs = 5 * 60_000;
/** Milliseconds after its time at which it is overdue. */
const overdueMs = 10 * 60_000;

interface Issued {
  readonly key: string;
  readonly chain: string;
  readonly refreshAtMs: number;
  readonly endMs: number;
  /** The reasons of Events about its age. */
  readonly said: Set<EventReason>;
}

/** What became of one projection of a Pod. */
interface Held {
  /** A request that has no answer yet, and its key. */
  asked: { readonly name: string; readonly key: string } | undefined;
  issued: Issued | undefined;
  /** The signer has refused: it is not asked again. */
  refused: string | undefined;
}

/**
 * Asks for the certificates of Pods by PodCertificateRequests (KEP-4317, pkg/kubelet/podcertificate). They are not kept over
 * a restart: then, all are asked for anew.
 */
export class PodCertificates {
  readonly #requests: ResourceClient<PodCertificateRequest>;
  readonly #accounts: ResourceClient<KubeObject>;
  readonly #context: ControllerContext;
  /** By uid of the Pod, then by projection. */
  readonly #held = new Map<string, Map<string, Held>>();

  constructor(context: ControllerContext) {
    const { clients } = context;
    this.#requests = clients.for(podCertificateRequests);
    this.#accounts = clients.for(serviceAccounts);
    this.#context = context;
  }

  /** The certificates of a Pod's volumes as far as they are issued; asks for those that are missing or old. */
  async of(pod: Pod, node: Node, signal: AbortSignal): Promise<ReadonlyMap<string, PodCertificate>> {
    const { uid = '' } = pod.metadata;
    const certificates = new Map<string, PodCertificate>();
    for (const { key, wanted } of certificatesOf(pod)) {
      const ofPod = this.#held.get(uid) ?? new Map<string, Held>();
      this.#held.set(uid, ofPod);
      const held = ofPod.get(key) ?? { asked: undefined, issued: undefined, refused: undefined };
      ofPod.set(key, held);
      let problem = 'credential bundle is not issued yet';
      try {
        await this.#advance(pod, node, wanted, held, signal);
      } catch (error) {
        problem = errorMessage(error);
      }
      const { issued, refused } = held;
      if (issued !== undefined) this.#sayAge(pod, issued);
      certificates.set(
        key,
        refused === undefined && issued !== undefined ? issued : { problem: refused ?? problem },
      );
    }
    return certificates;
  }

  /** The words of the kubelet's Events. */
  #sayAge(pod: Pod, { refreshAtMs, endMs, said }: Issued): void {
    const { clock, events } = this.#context;
    const now = clock.now();
    const say = (reason: EventReason, message: string): void => {
      if (!said.has(reason)) events.event(pod, 'Warning', reason, message);
      said.add(reason);
    };
    if (now > refreshAtMs + overdueMs) say('CertificateOverdueForRefresh', 'PodCertificate refresh overdue');
    if (now > endMs) say('CertificateExpired', 'PodCertificate expired');
  }

  forget({ metadata }: Pod): void {
    this.#held.delete(metadata.uid ?? '');
  }

  /** @throws what a request throws. */
  async #advance(
    pod: Pod,
    node: Node,
    wanted: PodCertificateProjection,
    held: Held,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, random } = this.#context;
    if (held.refused !== undefined) return;
    if (held.asked === undefined) {
      if (held.issued === undefined || held.issued.refreshAtMs <= clock.now()) {
        held.asked = await this.#ask(pod, node, wanted, signal);
      }
      return;
    }
    const { name, key } = held.asked;
    const { namespace = '' } = pod.metadata;
    const request = await this.#requests.get(namespace, name, { signal }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
    const {
      conditions = [],
      certificateChain = '',
      beginRefreshAt = '',
      notAfter = '',
    } = request?.status ?? {};
    const outcome = conditions.find(({ type }) => ['Issued', 'Denied', 'Failed'].includes(type));
    if (request !== undefined && outcome === undefined) return;
    held.asked = undefined;
    if (outcome === undefined) return;
    const { type, reason, message } = outcome;
    if (type !== 'Issued') {
      const why = `reason=${JSON.stringify(reason)} message=${JSON.stringify(message)}`;
      held.refused = `PodCertificateRequest was permanently ${type.toLowerCase()}: ${why}`;
      return;
    }
    held.issued = {
      key,
      chain: [...pemBlocks(certificateChain)].map(({ bytes }) => pem('CERTIFICATE', bytes)).join(''),
      refreshAtMs: (parseTime(beginRefreshAt) ?? clock.now()) + random() * maxRefreshDelayMs,
      endMs: parseTime(notAfter) ?? Infinity,
      said: new Set(),
    };
  }

  async #ask(
    { metadata, spec }: Pod,
    node: Node,
    { signerName = '', keyType = '', maxExpirationSeconds, userAnnotations }: PodCertificateProjection,
    signal: AbortSignal,
  ): Promise<Held['asked']> {
    const { namespace = '', name: podName = '', uid: podUID = '' } = metadata;
    const serviceAccountName = spec.serviceAccountName ?? 'default';
    const account = await this.#accounts.get(namespace, serviceAccountName, { signal });
    const { key, request } = await createStubRequest(keyType);
    const created = await this.#requests.create(
      {
        metadata: {
          namespace,
          generateName: 'req-',
          ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: podName, uid: podUID }],
        },
        spec: {
          ...{ signerName, podName, podUID, serviceAccountName },
          serviceAccountUID: account.metadata.uid ?? '',
          nodeName: node.metadata.name ?? '',
          nodeUID: node.metadata.uid ?? '',
          ...(maxExpirationSeconds === undefined ? {} : { maxExpirationSeconds }),
          ...(userAnnotations === undefined ? {} : { unverifiedUserAnnotations: userAnnotations }),
          stubPKCS10Request: request.toString('base64'),
        },
        status: {},
      },
      { signal },
    );
    return { name: created.metadata.name ?? '', key };
  }
}
