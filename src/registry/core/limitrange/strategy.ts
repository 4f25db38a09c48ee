import type { LimitRange } from '../../../objects/types/core.generated.ts';
import { genericStrategy } from '../../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../../objects/names.ts';
import type { StrategyContext } from '../../generic/strategy.ts';
import { validateLimits } from './validation.ts';

/** The rules of LimitRanges (`SetDefaults_LimitRangeItem`, `ValidateLimitRange`). They are applied by admission. */
export const limitRangeStrategy = genericStrategy<LimitRange>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  allowCreateOnUpdate: true,
  repeatsCreate: 'instead',
  // A LimitRange gets a name when the client gives none.
  prepareForCreate({ metadata }, context) {
    if ((metadata.name ?? '') === '') metadata.name = newUuid(context);
  },
  setDefaults(limitRange: Partial<Pick<LimitRange, 'spec'>>) {
    const spec = (limitRange.spec ??= {});
    for (const item of spec.limits ?? []) {
      if (item.type !== 'Container') continue;
      const limits = { ...item.max, ...item.default };
      const requests = { ...item.min, ...limits, ...item.defaultRequest };
      if (Object.keys(limits).length > 0) item.default = limits;
      if (Object.keys(requests).length > 0) item.defaultRequest = requests;
    }
  },
  validateCreate: ({ spec }) => validateLimits(spec.limits ?? []),
});

/** A random UUID, of version 4. */
function newUuid(context: StrategyContext): string {
  return 'xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx'.replace(/[xy]/g, (digit) =>
    Math.floor(digit === 'x' ? context.random() * 16 : 8 + context.random() * 4).toString(16),
  );
}
