use adjutant_core::*;
#[derive(Clone, Default)]
pub struct WeakTools;
impl WeakTools {
    pub(crate) fn encode(&self, r: &GenerateRequest, _: &[Reference]) -> GenerateRequest {
        r.clone()
    }
    pub(crate) fn decode(
        &self,
        r: GenerateResponse,
        _: &GenerateRequest,
        _: &[Reference],
    ) -> GenerateResponse {
        r
    }
}
