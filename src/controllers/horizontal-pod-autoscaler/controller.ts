import { byNamespace, indexByNamespace } from '../../client/informers/cache.ts';
import type { Informer } from '../../client/informers/informer.ts';
import { RestMapping } from '../../client/discovery.ts';
import { horizontalPodAutoscalers, pods as podsResource } from '../../client/resources.ts';
import type { Transport } from '../../client/transport.ts';
import { isStringMap, jsonEqual, listAt, numberAt, recordAt, textAt } from '../../objects/json.ts';
import { matchesLabels, parseLabelSelector } from '../../objects/selectors/labels.ts';
import { keyOf, type ObjectKey } from '../../objects/meta.ts';
import { errorMessage } from '../../objects/status.ts';
import { parseDuration, parseTime } from '../../objects/formats/time.ts';
import type { HorizontalPodAutoscaler } from '../../objects/types/autoscaling.generated.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import type { ControllerSpec, KeyLoop, ReconcileResult } from '../../runtime/key-loop.ts';
import { NewEvents } from '../../runtime/new-events.ts';
import { StatusWriter } from '../../runtime/status-writer.ts';
import { boundsOf, planMissingScale, planScaling, planStatus } from './plan.ts';
import { rememberChange, type ScalingHistory } from './plan-behavior.ts';
import type { PodSample } from './plan-replicas.ts';

/** `--horizontal-pod-autoscaler-sync-period`. */
const syncPeriodMs = 15_000;

export interface AutoscalerOptions {
  /** To targets of any kind, by their scales, and to the metrics API. */
  readonly transport: Transport;
}

/** Scales workloads by what their Pods use (kube-controller-manager's `horizontal-pod-autoscaler-controller`). */
export function horizontalPodAutoscalerController({ transport }: AutoscalerOptions): ControllerSpec {
  return {
    name: 'horizontal-pod-autoscaler-controller',
    eventSource: 'horizontal-pod-autoscaler',
    queue: 'horizontal_pod_autoscaler',
    build(loop) {
      const reconciler = new AutoscalerReconciler(loop, transport);
      return (key, signal) => reconciler.reconcile(key, signal);
    },
  };
}

/** The scale of a target. */
interface Scale {
  readonly path: string;
  /** As the server sent it. */
  readonly object: Readonly<Record<string, unknown>>;
  readonly replicas: number;
  readonly selector: string;
}

const noHistory: ScalingHistory = { recommendations: [], added: [], removed: [] };

class AutoscalerReconciler {
  readonly #loop: KeyLoop;
  readonly #transport: Transport;
  readonly #autoscalers: Informer<HorizontalPodAutoscaler>;
  readonly #pods: Informer<Pod>;
  readonly #status: StatusWriter<HorizontalPodAutoscaler>;
  readonly #events: NewEvents;
  readonly #history = new Map<ObjectKey, ScalingHistory>();
  /** The selectors of targets, by autoscaler. */
  readonly #selectors = new Map<ObjectKey, string>();
  #mapping: RestMapping;

  constructor(loop: KeyLoop, transport: Transport) {
    this.#loop = loop;
    this.#transport = transport;

    const indexes = { [byNamespace]: indexByNamespace };
    this.#autoscalers = loop.cache(horizontalPodAutoscalers, { indexes });
    this.#pods = loop.cache(podsResource, { indexes });

    this.#mapping = new RestMapping(transport);
    this.#status = new StatusWriter(loop, this.#autoscalers);
    this.#events = new NewEvents(loop.context);

    loop.on(this.#autoscalers, (change) => {
      // Metrics are read by the clock: a status that we have written is no reason.
      const isSame = change.kind === 'updated' && jsonEqual(change.object.spec, change.old.spec);
      return isSame ? [] : [keyOf(change.object)];
    });
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const hpa = this.#autoscalers.cache.get(key);
    if (hpa === undefined) {
      this.#events.forget(key);
      this.#history.delete(key);
      this.#selectors.delete(key);
      return undefined;
    }
    const waitMs = this.#status.pendingMs(key);
    if (waitMs > 0) return { requeueAfterMs: waitMs };

    let scale: Scale;
    try {
      scale = await this.#scaleOf(hpa, signal);
    } catch (error) {
      const { status, event } = planMissingScale(hpa, errorMessage(error), this.#now());
      this.#events.record(key, hpa, [event]);
      await this.#status.write(hpa, status, signal);
      return { requeueAfterMs: syncPeriodMs };
    }
    await this.#scale(key, hpa, scale, signal);
    return { requeueAfterMs: syncPeriodMs };
  }

  async #scale(
    key: ObjectKey,
    hpa: HorizontalPodAutoscaler,
    scale: Scale,
    signal: AbortSignal,
  ): Promise<void> {
    const { namespace = '' } = hpa.metadata;
    const { replicas: current, selector } = scale;
    this.#selectors.set(key, selector);
    const pods = this.#podsOf(namespace, selector);
    const samples = pods.length === 0 ? [] : await this.#samplesOf(namespace, selector, signal);
    const autoscalers = this.#controllersOf(namespace, pods);
    const history = this.#history.get(key) ?? noHistory;
    const now = this.#now();
    const plan = planScaling(hpa, { current, selector, pods, samples, autoscalers }, history, now);
    let after: ScalingHistory = { ...history, recommendations: plan.recommendations };
    let failure: string | undefined;
    if (plan.rescale !== undefined) {
      const { replicas } = plan.rescale;
      try {
        const spec = { ...recordAt(scale.object, 'spec'), replicas };
        await this.#transport.request('PUT', scale.path, { body: { ...scale.object, spec }, signal });
        after = rememberChange(boundsOf(hpa, current, now), replicas, after);
      } catch (error) {
        failure = errorMessage(error);
      }
    }
    this.#history.set(key, after);
    const { status, event } = planStatus(hpa, plan, { current, now, failure });
    this.#events.record(key, hpa, event === undefined ? plan.events : [...plan.events, event]);
    await this.#status.write(hpa, status, signal);
  }

  /** @throws where the target has none. */
  async #scaleOf({ metadata, spec }: HorizontalPodAutoscaler, signal: AbortSignal): Promise<Scale> {
    const { kind, name, apiVersion = 'v1' } = spec.scaleTargetRef;
    const { namespace = '' } = metadata;
    try {
      const path = `${await this.#mapping.pathOf({ apiVersion, kind, metadata: { namespace, name } })}/scale`;
      const object = recordAt((await this.#transport.request('GET', path, { signal })).json());
      const replicas = numberAt(object, 'spec', 'replicas');
      return { path, object, replicas, selector: textAt(object, 'status', 'selector') };
    } catch (error) {
      // A kind may be defined by now, or in another version.
      this.#mapping = new RestMapping(this.#transport);
      throw error;
    }
  }

  #podsOf(namespace: string, selector: string): readonly Pod[] {
    if (selector === '') return [];
    const requirements = parseLabelSelector(selector);
    return this.#pods.cache
      .byIndex(byNamespace, namespace)
      .filter(({ metadata }) => matchesLabels(requirements, metadata.labels));
  }

  /** The autoscalers whose targets select one of these Pods. */
  #controllersOf(namespace: string, pods: readonly Pod[]): readonly ObjectKey[] {
    return this.#autoscalers.cache
      .byIndex(byNamespace, namespace)
      .map(keyOf)
      .filter((key) => {
        const selector = this.#selectors.get(key) ?? '';
        if (selector === '') return false;
        const requirements = parseLabelSelector(selector);
        return pods.some(({ metadata }) => matchesLabels(requirements, metadata.labels));
      })
      .sort();
  }

  /** What Pods use by the metrics API, or why that is not known. */
  async #samplesOf(
    namespace: string,
    labelSelector: string,
    signal: AbortSignal,
  ): Promise<readonly PodSample[] | string> {
    const path = `/apis/metrics.k8s.io/v1beta1/namespaces/${encodeURIComponent(namespace)}/pods`;
    try {
      const list = (await this.#transport.request('GET', path, { query: { labelSelector }, signal })).json();
      return listAt(list, 'items').map(readSample);
    } catch (error) {
      return `${errorMessage(error)} (get pods.metrics.k8s.io)`;
    }
  }

  #now(): number {
    return this.#loop.context.clock.now();
  }
}

function readSample(item: unknown): PodSample {
  return {
    pod: textAt(item, 'metadata', 'name'),
    atMs: parseTime(textAt(item, 'timestamp')) ?? 0,
    windowMs: parseDuration(textAt(item, 'window')) ?? 0,
    containers: listAt(item, 'containers').map((container) => {
      const usage = recordAt(container, 'usage');
      return { name: textAt(container, 'name'), usage: isStringMap(usage) ? usage : {} };
    }),
  };
}
