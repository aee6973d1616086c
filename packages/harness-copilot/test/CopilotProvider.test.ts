import { assert, describe, it } from "@effect/vitest"
import { CopilotProvider } from "@turnpike/harness-copilot"
import * as Result from "effect/Result"

const base = { COPILOT_PROVIDER_BASE_URL: "http://127.0.0.1:1/v1", COPILOT_MODEL: "m" }
const choose = (env: Readonly<Record<string, string>>, model?: string) => Result.getOrThrow(CopilotProvider.choose(env, model))
const refusal = (env: Readonly<Record<string, string>>) => {
  const result = CopilotProvider.choose(env, undefined)
  return Result.isFailure(result) ? result.failure.failure.message : undefined
}

describe("CopilotProvider", () => {
  it("leaves the models to GitHub where no service is named", () => {
    assert.deepStrictEqual(choose({ COPILOT_PROVIDER_API_KEY: "k" }), { provider: undefined, model: undefined })
    assert.deepStrictEqual(choose({ COPILOT_MODEL: "a" }, "b"), { provider: undefined, model: "b" })
  })

  it("hands on everything that the environment says", () => {
    assert.deepStrictEqual(choose(base), { provider: { baseUrl: "http://127.0.0.1:1/v1", type: "openai" }, model: "m" })
    assert.deepStrictEqual(
      choose({
        ...base,
        COPILOT_PROVIDER_TYPE: "azure",
        COPILOT_PROVIDER_WIRE_API: "responses",
        COPILOT_PROVIDER_TRANSPORT: "websockets",
        COPILOT_PROVIDER_API_KEY: "key",
        COPILOT_PROVIDER_BEARER_TOKEN: "token",
        COPILOT_PROVIDER_AZURE_API_VERSION: "2024-10-21",
        COPILOT_PROVIDER_HEADERS: "A: 1\nB:2\\nC: x:y",
        COPILOT_PROVIDER_MODEL_ID: "known",
        COPILOT_PROVIDER_WIRE_MODEL: "mine",
        COPILOT_PROVIDER_MAX_PROMPT_TOKENS: "1000",
        COPILOT_PROVIDER_MAX_OUTPUT_TOKENS: "10"
      }).provider,
      {
        baseUrl: "http://127.0.0.1:1/v1",
        type: "azure",
        wireApi: "responses",
        transport: "websockets",
        apiKey: "key",
        bearerToken: "token",
        azure: { apiVersion: "2024-10-21" },
        headers: { A: "1", B: "2", C: "x:y" },
        modelId: "known",
        wireModel: "mine",
        maxPromptTokens: 1000,
        maxOutputTokens: 10
      }
    )
  })

  it("sends the model that the caller names", () => {
    const chosen = choose({ ...base, COPILOT_PROVIDER_WIRE_MODEL: "other" }, "mine")
    assert.deepStrictEqual([chosen.model, chosen.provider?.["wireModel"]], ["mine", undefined])
  })

  it("refuses by name what cannot be handed on, and repeats no value", () => {
    assert.deepStrictEqual(
      [
        refusal({ COPILOT_PROVIDER_BASE_URL: "x" }),
        refusal({ COPILOT_OFFLINE: "true" }),
        refusal({ ...base, COPILOT_PROVIDER_API_KEY_COMMAND: "print-secret" }),
        refusal({ ...base, COPILOT_PROVIDER_TYPE: "secret" }),
        refusal({ ...base, COPILOT_PROVIDER_WIRE_API: "secret" }),
        refusal({ ...base, COPILOT_PROVIDER_TRANSPORT: "secret" }),
        refusal({ ...base, COPILOT_PROVIDER_HEADERS: "secret" }),
        refusal({ ...base, COPILOT_PROVIDER_MAX_PROMPT_TOKENS: "secret" })
      ],
      [
        "COPILOT_PROVIDER_BASE_URL names a service of its own, and no model is named",
        "COPILOT_OFFLINE keeps Copilot from GitHub's models, and no other service is named",
        "COPILOT_PROVIDER_API_KEY_COMMAND cannot be handed to Copilot's server",
        "COPILOT_PROVIDER_TYPE is none of openai, azure, anthropic",
        "COPILOT_PROVIDER_WIRE_API is none of completions, responses",
        "COPILOT_PROVIDER_TRANSPORT is none of http, websockets",
        "COPILOT_PROVIDER_HEADERS has a line that is not `Name: Value`",
        "COPILOT_PROVIDER_MAX_PROMPT_TOKENS is no whole number above 0"
      ]
    )
    assert.strictEqual(refusal({ ...base, COPILOT_PROVIDER_API_KEY: "" }), undefined)
  })
})
