/** The largest weight of an endpoint, as HAProxy has it. */
const maxWeight = 256;

/** A Service among those of a rule. */
export interface WeightedService {
  /** 0: gets nothing. */
  readonly weight: number;
  /** The number of its usable endpoints. */
  readonly endpoints: number;
}

/**
 * The weight of each endpoint of each Service, 0 to 256: a Service's weight is shared by its endpoints, and scaled so that
 * the largest is 256. Fractions are cut, to 1 at least. One active Service alone: 1 (`router.go`,
 * `calculateServiceWeights`, of the router of OpenShift).
 *
 * @returns one weight for each Service, in their order; all 0 where nothing can be reached.
 */
export function endpointWeights(services: readonly WeightedService[]): number[] {
  const shares = services.map(({ weight, endpoints }) => (endpoints > 0 ? weight / endpoints : 0));
  if (shares.filter((share) => share > 0).length === 1) return shares.map((share) => (share > 0 ? 1 : 0));
  const largest = shares.reduce((most, share) => Math.max(most, share), 0);
  return shares.map((share) => (share > 0 ? Math.max(1, Math.floor((share * maxWeight) / largest)) : 0));
}
