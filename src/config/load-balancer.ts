import { z } from 'zod';

/** Flags of every command that reads Services as the load balancer does. */
export const loadBalancerFlags = {
  lbClass: z.string().min(1),
  defaultClass: z.boolean(),
  compat: z.boolean(),
};

/** Which Services are served, and how they are read. */
export interface LoadBalancerSettings {
  readonly loadBalancerClass: string;
  /** Services without a class too. */
  readonly isDefaultClass: boolean;
  /** Other load balancers' annotations count. */
  readonly compat: boolean;
}

/** What the flags say. */
export function loadBalancerSettings(
  parsed: z.infer<z.ZodObject<typeof loadBalancerFlags>>,
): LoadBalancerSettings {
  const { lbClass: loadBalancerClass, defaultClass: isDefaultClass, compat } = parsed;
  return { loadBalancerClass, isDefaultClass, compat };
}
