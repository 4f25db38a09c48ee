import { isNotFound } from '../../client/errors.ts';
import type {
  ExpressionWarning,
  ValidatingAdmissionPolicy,
} from '../../objects/types/admissionregistration.generated.ts';
import type { Transport } from '../../client/transport.ts';
import { keyOf, type ObjectKey } from '../../objects/key.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { discover } from '../../client/discovery.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../runtime/context.ts';
import { Controller } from '../../runtime/controller.ts';
import { kindSchemas, type KindSchema } from './kind-schemas.ts';
import { asksFor, needsCheck, kindsToCheck, paramKindOf } from './plan.ts';
import { inGroup } from '../../client/resources.ts';

const name = 'validatingadmissionpolicy-status-controller';

const policies = inGroup('admissionregistration.k8s.io')<ValidatingAdmissionPolicy>(
  'ValidatingAdmissionPolicy',
  'validatingadmissionpolicies',
  ['spec'],
  { namespaced: false },
);

/** Options of {@link policyStatusController}. */
export interface PolicyStatusOptions {
  readonly transport: Transport;
  /** The type errors of a policy's expressions for the kinds. */
  readonly checkTypes: (
    policy: KubeObject,
    kinds: readonly KindSchema[],
    params: KindSchema | undefined,
  ) => Promise<readonly ExpressionWarning[]>;
}

/**
 * Writes the type errors of each ValidatingAdmissionPolicy's expressions into its status (kube-controller-manager's
 * `validatingadmissionpolicy-status-controller`), once for each generation.
 */
export function policyStatusController(options: PolicyStatusOptions): ControllerDefinition {
  return { name, start: (context) => start(context, options) };
}

function start(
  context: ControllerContext,
  { transport, checkTypes }: PolicyStatusOptions,
): readonly Runnable[] {
  const informer = context.informers.informer(policies);
  const client = context.clients.for(policies);

  const check = async (policy: ValidatingAdmissionPolicy, signal: AbortSignal): Promise<void> => {
    const { resources, failures } = await discover(transport, signal);
    // Retried: without schemas the kinds would count as unknown, and the generation as checked.
    const unread = failures.find(
      ({ group, version, error }) => !isNotFound(error) && asksFor(policy, group, version),
    );
    if (unread !== undefined) throw unread.error;
    const kinds = await kindSchemas(transport, kindsToCheck(policy, resources), signal);
    const paramKind = paramKindOf(policy);
    const [params] = paramKind === undefined ? [] : await kindSchemas(transport, [paramKind], signal);
    const expressionWarnings = await checkTypes(policy, kinds, params);
    const status = {
      observedGeneration: policy.metadata.generation ?? 0,
      typeChecking: expressionWarnings.length === 0 ? {} : { expressionWarnings: [...expressionWarnings] },
    };
    await client.applyPatch(
      { metadata: { name: policy.metadata.name ?? '' }, status },
      { subresource: 'status', fieldManager: name, force: true, signal },
    );
    context.log.info({ key: policy.metadata.name, warnings: expressionWarnings.length }, 'policy checked');
  };

  const controller = new Controller({
    name: 'validatingadmissionpolicy-status',
    context,
    waitFor: [informer],
    reconcile: async (key: ObjectKey, signal: AbortSignal) => {
      const policy = informer.cache.get(key);
      if (policy === undefined || !needsCheck(policy)) return undefined;
      try {
        await check(policy, signal);
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
      return undefined;
    },
  });
  const enqueue = (policy: ValidatingAdmissionPolicy) => controller.enqueue(keyOf(policy));
  informer.addHandler({ added: enqueue, updated: enqueue });
  return [controller];
}
